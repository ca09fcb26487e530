import { organizationalDomain } from "../../core/public-suffix.ts";
import type { AuthVerdict } from "./authenticate.ts";
import { shownAuthorDomain, shownAuthors } from "./author-readings.ts";
import { rawFields } from "../reading/raw-headers.ts";

/**
 * Returns whether SPF or DKIM passes for the domain of a message's From. The domains may differ below their organizational
 * domain (RFC 7489 §3.1, relaxed). Unlike DMARC it asks for no policy.
 */
export function isFromProven(raw: Uint8Array, { spf, dkim }: Pick<AuthVerdict, "spf" | "dkim">): boolean {
  const from = shownAuthorDomain(shownAuthors(rawFields(raw)), "");
  if (from === null) return false;
  const author = organizationalDomain(from);
  return [spf, ...dkim].some(
    ({ result, domain }) => result === "pass" && domain !== null && organizationalDomain(domain) === author,
  );
}
