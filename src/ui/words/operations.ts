/** A piece of advice: words, or the page of the dashboard that does what an operation of the API does. */
export interface AdvicePart {
  text: string;
  href: string | null;
  /** Its place in the text. */
  at: number;
}

/** What the dashboard has for an operation: the page with its button, and the path. `$1` is the id in the operation. */
const PLACES: readonly [operation: RegExp, text: string, href: string][] = [
  [/^DELETE \/v1\/suppressions$/, "Suppressions › Lift", "/suppressions"],
  [/^POST \/v1\/domains$/, "Domains › Add domain", "/domains?create=1"],
  [/^POST \/v1\/domains\/(dom_\w+)\/verify$/, "Domains › Verify", "/domains/$1"],
  [/^POST \/v1\/domains\/\{id\}\/verify$/, "Domains › Verify", "/domains"],
  [/^POST \/v1\/domains\/(dom_\w+)\/rotate-dkim$/, "Domains › Rotate key", "/domains/$1"],
  [/^POST \/v1\/routes$/, "Routes › Create route", "/routes?create=1"],
  [/^POST \/v1\/lanes\/\S+\/open$/, "Home › Open the lane", "/"],
  [/^POST \/v1\/templates\/preview$/, "Templates › Preview", "/templates"],
  [/^POST \/v1\/emails\/check$/, "Send › Check", "/messages?compose=1"],
  [/^POST \/v1\/emails\/\{id\}\/approve or \/reject$/, "the buttons above", ""],
  [/^POST \/v1\/emails\/\{id\}\/approve$/, "the button above", ""],
];

const OPERATION = /\b(?:GET|POST|PATCH|PUT|DELETE) \/v1\/[\w/{}@:+-]+(?:\.[\w/{}@:+-]+)*(?: or \/reject)?/g;

/** Returns the pieces of advice of the API, with the pages of the dashboard in the place of operations. */
export function adviceParts(advice: string): AdvicePart[] {
  const parts: AdvicePart[] = [];
  let from = 0;
  for (const { 0: operation, index } of advice.matchAll(OPERATION)) {
    const place = placeOf(operation);
    if (place === null) continue;
    parts.push({ text: advice.slice(from, index), href: null, at: from }, { ...place, at: index });
    from = index + operation.length;
  }
  return [...parts, { text: advice.slice(from), href: null, at: from }].filter(({ text }) => text !== "");
}

function placeOf(operation: string): Omit<AdvicePart, "at"> | null {
  for (const [pattern, text, href] of PLACES)
    if (pattern.test(operation)) {
      const path = operation.replace(pattern, href);
      return { text, href: path === "" ? null : path };
    }
  return null;
}
