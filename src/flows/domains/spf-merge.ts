import type { AuthResolver } from "../../mail/auth/resolver.ts";

const ALL = /^[+?~-]?all$/i;
const REDIRECT = /^redirect=(.+)$/i;
/** Terms that ask the DNS (RFC 7208 §4.6.4), with the name that they evaluate further. */
const ASKS = /^[+?~-]?(?:(?:include:|redirect=)(.+)|(?:a|mx|ptr|exists)(?:[:/].*)?)$/i;
/** Maximum depth of nested includes that are counted, and number of terms in one record. */
const MAX_DEPTH = 10;
const MAX_COUNTED = 50;
/** Maximum number of records read to count the lookups of one. */
const MAX_RECORDS = 100;

/**
 * Returns one SPF record that lets the same hosts send as the given ones, and also `included`. A domain must have only
 * one (RFC 7208 §3.2), so this one replaces them. Our `include` comes before `all`, which ends the evaluation.
 * @param place where our `include` is: before all other terms, or after them
 */
export function mergedSpf(
  records: readonly string[],
  included: string,
  place: "first" | "last" = "last",
): string {
  const terms = records.flatMap((record) => record.trim().split(/\s+/).slice(1)).map(corrected);
  const ending = terms.find((term) => ALL.test(term));
  const mechanisms = terms.flatMap((term) => {
    const [, target] = REDIRECT.exec(term) ?? [];
    if (ALL.test(term) || term === "") return [];
    // A redirect counts only if its record has no `all` (§6.1) and is the only record. Else it becomes an include.
    if (target === undefined) return [term];
    return records.length > 1 ? [`include:${target}`] : [];
  });
  const redirect = terms.find((term) => REDIRECT.test(term));
  const last = ending ?? (records.length === 1 && redirect !== undefined ? redirect : "~all");
  const ours = `include:${included}`;
  const ordered = place === "first" ? [ours, ...mechanisms] : [...mechanisms, ours];
  return ["v=spf1", ...new Set(ordered), last].join(" ");
}

/** Corrects what people often write for a term. */
function corrected(term: string): string {
  return term.replace(/^([+?~-]?ip)v([46]:)/i, "$1$2").replace(/^\+?all$/i, "~all");
}

/** Returns the text without the quotation marks that belong to zone files, not to records. */
export function unquoted(text: string): string {
  return text
    .replaceAll("\\", "")
    .replace(/"\s*"/g, "")
    .replace(/^["'\s]+|["'\s]+$/g, "");
}

/** How many lookups a term of a record costs receivers that reach its end. */
export interface TermCost {
  term: string;
  lookups: number;
}

/** Returns the includes of a record, and its redirect, with their costs, the most expensive first. */
export async function includeCosts(resolve: AuthResolver, record: string): Promise<TermCost[]> {
  const costs: TermCost[] = [];
  const budget = { left: MAX_RECORDS };
  for (const term of termsOf(record)) {
    const target = ASKS.exec(term)?.[1];
    if (target !== undefined) costs.push({ term, lookups: 1 + (await costOf(resolve, target, 1, budget)) });
  }
  return costs.sort((one, other) => other.lookups - one.lookups);
}

function termsOf(record: string): string[] {
  return record
    .trim()
    .split(/\s+/)
    .slice(1, MAX_COUNTED + 1);
}

async function costOf(
  resolve: AuthResolver,
  name: string,
  depth: number,
  budget: { left: number },
): Promise<number> {
  if (depth >= MAX_DEPTH || name.includes("%") || budget.left-- <= 0) return 0;
  const texts = await resolve(name, "TXT").catch(() => []);
  const record = texts.map((text) => [text].flat().join("")).find((text) => /^v=spf1(?: |$)/i.test(text));
  let cost = 0;
  for (const term of termsOf(record ?? "")) {
    const asks = ASKS.exec(term);
    if (asks === null) continue;
    cost += 1 + (asks[1] === undefined ? 0 : await costOf(resolve, asks[1], depth + 1, budget));
  }
  return cost;
}
