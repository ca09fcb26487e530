import { splitAddress } from "../../core/addresses.ts";
import type { ShownAuthors } from "./author-readings.ts";
import type { Evaluated } from "./dmarc-verdict.ts";

/**
 * Returns the address in From if DMARC proves its domain, else null. An agent acts on it, so it is stricter than the policy. There must be
 * one address, which is the one that the record shows. A signature over part of the body (`l=`, RFC 6376 §8.2) proves nothing.
 */
export function provenAddress({ addresses }: ShownAuthors, { response }: Evaluated): string | null {
  const [address, ...others] = addresses;
  if (response === false || response.status.result !== "pass") return null;
  if (address === undefined || others.length > 0) return null;
  if (splitAddress(address)?.domain !== response.status.header?.from) return null;
  const { spf, dkim } = response.alignment ?? {};
  return spf?.result || (dkim?.result && !dkim.underSized) ? address : null;
}
