const ALL = /^[+?~-]?all$/i;
const REDIRECT = /^redirect=(.+)$/i;

/**
 * Returns one SPF record that lets the same hosts send as the given ones, and also `included`. A domain must have only
 * one (RFC 7208 §3.2), so this one replaces them. Our `include` comes before `all`, which ends the evaluation.
 */
export function mergedSpf(records: readonly string[], included: string): string {
  const terms = records.flatMap((record) => record.trim().split(/\s+/).slice(1));
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
  return ["v=spf1", ...new Set([...mechanisms, `include:${included}`]), last].join(" ");
}
