import { organizationalDomain } from "../../core/public-suffix.ts";
import type { AuthVerdict } from "./authenticate.ts";
import { shownAuthorDomain, shownAuthors } from "./author-readings.ts";
import { rawFields } from "../reading/raw-headers.ts";

/**
 * Returns the domain of a message's From if SPF or DKIM proves it, else null. The proven domain may differ below the organizational
 * one (RFC 7489 §3.1, relaxed). Unlike DMARC it asks for no policy.
 */
export function provenAuthor(
  raw: Uint8Array,
  { spf, dkim }: Pick<AuthVerdict, "spf" | "dkim">,
): string | null {
  const from = shownAuthorDomain(shownAuthors(rawFields(raw)), "");
  if (from === null) return null;
  const author = organizationalDomain(from);
  const isProven = [spf, ...dkim].some(
    ({ result, domain }) => result === "pass" && domain !== null && organizationalDomain(domain) === author,
  );
  return isProven ? from : null;
}
