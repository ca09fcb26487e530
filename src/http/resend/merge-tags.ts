/** Resend's names of what a message of a broadcast shows, and Liquid's. The first of two is shown. */
const NAMES: Readonly<Record<string, string>> = {
  "contact.first_name": "contact.firstName",
  "contact.last_name": "contact.lastName",
  "contact.email": "contact.email",
  FIRST_NAME: "contact.firstName",
  LAST_NAME: "contact.lastName",
  EMAIL: "contact.email",
  RESEND_UNSUBSCRIBE_URL: "unsubscribeUrl",
};
const PROPERTY = "contact.properties.";

/** A placeholder of Resend's: `{{{FIRST_NAME|there}}}`. */
const THEIRS = /\{\{\{\s*([A-Za-z_][A-Za-z0-9_.]{0,80})\s*(?:\|([^{}|]{0,200}))?\}\}\}/g;
/** A placeholder that `toLiquid` makes. */
const OURS =
  /\{\{ ((?:contact\.[A-Za-z0-9_.]{1,80})|unsubscribeUrl)(?: \| default: ("(?:[^"\\]|\\.){0,400}"))? \| raw \}\}/g;

/** Converts Resend's placeholders to Liquid's. Resend does not escape values, so `raw` leaves them as they are. */
export function toLiquid(text: string): string {
  return text.replace(THEIRS, (theirs, name: string, fallback?: string) => {
    const ours =
      NAMES[name] ?? (name.startsWith("contact.") ? PROPERTY + name.slice("contact.".length) : null);
    if (ours === null) return theirs;
    const filled = fallback === undefined ? "" : ` | default: ${JSON.stringify(fallback.trim())}`;
    return `{{ ${ours}${filled} | raw }}`;
  });
}

/** Converts the placeholders of `toLiquid` to Resend's. */
export function fromLiquid(text: string): string {
  return text.replace(OURS, (_, name: string, fallback?: string) => {
    const known = Object.entries(NAMES).find(([, ours]) => ours === name)?.[0];
    const theirs = known ?? name.replace(PROPERTY, "contact.");
    return `{{{${theirs}${fallback === undefined ? "" : `|${JSON.parse(fallback)}`}}}}`;
  });
}
