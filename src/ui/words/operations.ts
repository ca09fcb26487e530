/** A piece of advice: words, or the page of the dashboard that does what an operation of the API does. */
export interface AdvicePart {
  text: string;
  href: string | null;
  /** Its place in the text. */
  at: number;
}

/**
 * The words and the page of the dashboard for each operation that the API advises. Null is the page that shows the advice.
 * `:id` means an id or address. If the operation has `{id}` there, the link leads to the list.
 */
export const PLACES: readonly [operation: string, text: string, href: string | null][] = [
  ["GET /v1/suppressions", "Suppressions", "/suppressions"],
  ["POST /v1/suppressions/import", "Suppressions › Import", "/suppressions?import=1"],
  ["POST /v1/contacts/import", "Contacts › Import", "/contacts?import=1"],
  ["DELETE /v1/suppressions", "Suppressions › Lift", "/suppressions"],
  ["DELETE /v1/suppressions?email=:id", "Suppressions › Lift", "/suppressions/:id"],
  ["POST /v1/domains", "Domains › Add domain", "/domains?create=1"],
  ["GET /v1/domains/:id", "the page of the domain", "/domains/:id"],
  ["POST /v1/domains/:id/verify", "Domains › Verify", "/domains/:id"],
  ["POST /v1/domains/:id/rotate-dkim", "Domains › Rotate DKIM", "/domains/:id?rotate=1"],
  ["PATCH /v1/domains/:id/receiving", "Domains › Receiving", "/domains/:id"],
  ["POST /v1/forward-addresses", "Rules › Forward addresses", "/rules?forward=1"],
  ["POST /v1/routes", "Routes › Create route", "/routes?create=1"],
  ["PATCH /v1/routes/:id", "Routes › Edit", "/routes/:id"],
  ["GET /v1/lanes", "Home › Providers", "/"],
  ["POST /v1/lanes/:id/open", "Home › Providers › Open", "/"],
  ["GET /v1/stats", "Home › Figures", "/"],
  ["GET /v1/senders", "Projects", "/projects"],
  ["PATCH /v1/senders/:id", "Projects › Edit", "/projects/:id"],
  ["GET /v1/members", "People", "/people"],
  ["PATCH /v1/account", "People › Change owner", "/people?owner=1"],
  ["POST /v1/templates/preview", "Templates › Preview", "/templates"],
  ["GET /v1/emails", "Messages", "/messages"],
  ["POST /v1/emails", "Send", "/messages?compose=1"],
  ["POST /v1/emails/check", "Send › Check", "/messages?compose=1"],
  ["GET /v1/emails/:id/attempts", "the tab SMTP", null],
  ["POST /v1/emails/:id/forward", "Forward, in its conversation,", null],
  ["POST /v1/emails/:id/approve or /reject", "the buttons above", null],
  ["POST /v1/emails/:id/approve", "the button above", null],
];

const PATTERNS = PLACES.map(([operation, text, href]) => {
  const literal = operation.replaceAll(/[.?]/g, "\\$&").replace(":id", "([^/?]+)");
  return { pattern: new RegExp(`^${literal}$`), text, href };
});

/** An operation, with the JSON of its body and in backquotes if the advice has these. */
const OPERATION =
  /`?\b((?:GET|POST|PATCH|PUT|DELETE) \/v1\/[\w/{}@:%+-]+(?:\.[\w/{}@:%+-]+)*(?:\?\w+=[^\s`]*[^\s`.,;])?(?: or \/reject)?)(?: \{"[^}]*\})?`?/g;

/** Returns the pieces of advice of the API, with the pages of the dashboard in the place of operations. */
export function adviceParts(advice: string): AdvicePart[] {
  const parts: AdvicePart[] = [];
  let from = 0;
  for (const { 0: found, 1: operation = "", index } of advice.matchAll(OPERATION)) {
    const place = placeOf(operation);
    if (place === null) continue;
    parts.push({ text: advice.slice(from, index), href: null, at: from }, { ...place, at: index });
    from = index + found.length;
  }
  return [...parts, { text: advice.slice(from), href: null, at: from }].filter(({ text }) => text !== "");
}

function placeOf(operation: string): Omit<AdvicePart, "at"> | null {
  for (const { pattern, text, href } of PATTERNS) {
    const found = pattern.exec(operation);
    if (found !== null) return { text, href: href === null ? null : pathOf(href, found[1]) };
  }
  return null;
}

function pathOf(href: string, id: string | undefined): string {
  return id === undefined || id === "{id}" ? href.replace(/\/:id.*/, "") : href.replace(":id", id);
}
