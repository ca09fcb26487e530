import { recipientRule } from "../core/key-bounds.ts";
import { type Kind, listFault, listOf } from "./kinds.ts";

/** Maximum number of addresses and domains in one setting. */
const MAX_ADDRESSES_OR_DOMAINS = 1000;

/** Addresses, and domains as `@example.com`. They are read in the form that is compared. */
export const addressesOrDomains: Kind<readonly string[]> = {
  fault: (given) =>
    listFault(
      given,
      (item) => recipientRule(item) !== null,
      `must be a comma list of at most ${MAX_ADDRESSES_OR_DOMAINS} addresses and @domains`,
      MAX_ADDRESSES_OR_DOMAINS,
    ),
  read: (given) => listOf(given).flatMap((item) => recipientRule(item) ?? []),
};

/** URL of an OpenID provider: https, or http at this machine for tests. */
export const issuer: Kind<string> = {
  fault(given) {
    const url = URL.parse(given);
    const isHere = url !== null && ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    return url?.protocol === "https:" || (url?.protocol === "http:" && isHere)
      ? null
      : "must be an https: URL";
  },
  read: (given) => given,
};
