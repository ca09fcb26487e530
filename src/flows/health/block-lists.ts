import { isIPv4, isIPv6 } from "node:net";
import { toReverseName } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** A DNS block list (RFC 5782). */
interface BlockList {
  title: string;
  zone: string;
  /** The kind of its entries. */
  of: "addresses" | "domains";
  /** An entry that is always listed (RFC 5782 §5). If the list does not show it, its silence means nothing. */
  testEntry: string;
  /** Answers that list an entry. Others say why the list does not answer us. */
  listed: RegExp;
  /** The page on which an operator asks to be taken off. */
  delisting: string;
}

/** The entry 127.0.0.2, as a name. */
const TEST_ADDRESS = "2.0.0.127";
/** An answer within 127.0.0.0/24 but 127.0.0.1, by which some lists refuse large resolvers. */
const USUAL = /^127\.0\.0\.(?!1$)\d+$/;

const LISTS: readonly BlockList[] = [
  {
    title: "Spamhaus ZEN",
    zone: "zen.spamhaus.org",
    of: "addresses",
    testEntry: TEST_ADDRESS,
    listed: USUAL,
    delisting: "https://check.spamhaus.org/",
  },
  {
    title: "Barracuda",
    zone: "b.barracudacentral.org",
    of: "addresses",
    testEntry: TEST_ADDRESS,
    listed: USUAL,
    delisting: "https://www.barracudacentral.org/rbl/removal-request",
  },
  {
    title: "SpamCop",
    zone: "bl.spamcop.net",
    of: "addresses",
    testEntry: TEST_ADDRESS,
    listed: USUAL,
    delisting: "https://www.spamcop.net/bl.shtml",
  },
  {
    title: "PSBL",
    zone: "psbl.surriel.com",
    of: "addresses",
    testEntry: TEST_ADDRESS,
    listed: USUAL,
    delisting: "https://psbl.org/remove",
  },
  {
    title: "Mailspike",
    zone: "bl.mailspike.net",
    of: "addresses",
    testEntry: TEST_ADDRESS,
    listed: USUAL,
    delisting: "https://mailspike.io/ip_verify",
  },
  {
    title: "Spamhaus DBL",
    zone: "dbl.spamhaus.org",
    of: "domains",
    testEntry: "dbltest.com",
    listed: /^127\.0\.1\.(?!255$)\d+$/,
    delisting: "https://check.spamhaus.org/",
  },
  {
    title: "SURBL",
    zone: "multi.surbl.org",
    of: "domains",
    testEntry: "surbl-org-permanent-test-point.com",
    listed: USUAL,
    delisting: "https://surbl.org/surbl-analysis",
  },
  {
    title: "URIBL",
    zone: "multi.uribl.com",
    of: "domains",
    testEntry: "test.uribl.com",
    listed: USUAL,
    delisting: "https://admin.uribl.com/",
  },
];

/** Maximum number of addresses and of domains that each list is queried for. */
export const MAX_LISTED_SUBJECTS = 20;

export interface BlockListParts {
  resolver: Resolver;
  /** Addresses that mail leaves from. */
  addresses: readonly string[];
  /** Domains that messages are from, and hosts of their links. */
  domains: readonly string[];
}

/** The entry ::FFFF:7F00:2, which every list of IPv6 addresses shows (RFC 5782 §5). */
const TEST_IPV6 = "::ffff:7f00:2";

/**
 * Returns a check for each block list, and another for the IPv6 addresses. A list that refuses our resolver answers with a code or as
 * if nothing were listed, so it counts as unknown until it shows its test entry.
 */
export function blockListChecks(parts: BlockListParts): Check[] {
  const [v4, v6] = [parts.addresses.filter(isIPv4), parts.addresses.filter(isIPv6)];
  const fix = "Check that DNS_SERVERS are reachable.";
  return LISTS.flatMap((list): Check[] => {
    const name = `list ${list.zone}`;
    if (list.of === "domains") return [{ name, fix, run: () => findingOf(parts, list, parts.domains) }];
    const ofIPv6 = { name: `${name} ipv6`, fix, run: () => ipv6Finding(parts, list, v6) };
    return [{ name, fix, run: () => findingOf(parts, list, v4) }, ...(v6.length > 0 ? [ofIPv6] : [])];
  });
}

/** Most lists have no IPv6 addresses, so one that shows its test entry for IPv4 alone is no fault. */
async function ipv6Finding(
  parts: BlockListParts,
  list: BlockList,
  addresses: readonly string[],
): Promise<Finding> {
  const testEntry = entryOf(list, TEST_IPV6);
  const [v4, v6] = await Promise.all([
    answerOf(parts.resolver, list, list.testEntry),
    answerOf(parts.resolver, list, testEntry),
  ]);
  if (v4 === "listed" && v6 === "clean") return ok(`${list.title} lists no IPv6 addresses.`);
  return findingOf(parts, { ...list, testEntry }, addresses);
}

async function findingOf(parts: BlockListParts, list: BlockList, given: readonly string[]): Promise<Finding> {
  const { title, zone, of, delisting } = list;
  const subjects = given.slice(0, MAX_LISTED_SUBJECTS);
  if (subjects.length === 0) return ok(`There are no ${of} to look up.`);
  const test = await answerOf(parts.resolver, list, list.testEntry);
  if (test !== "listed")
    return warn(
      `Unknown: ${title} does not answer these name servers${test === "clean" ? "" : ` (${test})`}.`,
      "Set DNS_SERVERS to a resolver of your own: block lists refuse those that many share.",
    );
  const answers = await Promise.all(
    subjects.map((subject) => answerOf(parts.resolver, list, entryOf(list, subject))),
  );
  const listed = subjects.filter((_, at) => answers[at] === "listed");
  if (listed.length > 0)
    return fail(`${title} lists ${listed.join(", ")}.`, `Find the cause, then ask at ${delisting}.`);
  const unknown = subjects.filter((_, at) => answers[at] !== "clean");
  if (unknown.length > 0)
    return warn(`Unknown: ${zone} did not answer for ${unknown.join(", ")}.`, "Try again later.");
  return ok(`${title} lists none of ${subjects.length} ${of}.`);
}

function entryOf({ of }: BlockList, subject: string): string {
  if (of === "domains") return subject;
  const reverse = toReverseName(subject) ?? "";
  return reverse.slice(0, reverse.indexOf(isIPv4(subject) ? ".in-addr" : ".ip6"));
}

/** Returns `listed`, `clean`, or the answer or trouble that says neither. */
async function answerOf(resolver: Resolver, { zone, listed }: BlockList, entry: string): Promise<string> {
  const found = await resolver.resolve(`${entry}.${zone}`, "A", { fresh: true });
  if (found.status === "nxdomain" || found.status === "nodata") return "clean";
  if (found.status === "failure") return found.reason;
  const codes = found.records.flatMap((answer) => (answer.type === "A" ? [answer.data] : []));
  return codes.some((code) => listed.test(code)) ? "listed" : (codes[0] ?? "no address");
}
