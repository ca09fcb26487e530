const PREFIX = "postrider.";
/** How long a browser keeps a choice, seconds: one year. */
const KEPT_SECONDS = 31_536_000;

/** The choices are cookies, because the server draws the page as the person has chosen. */
let read = () => document.cookie;

/** Takes the choices from the cookies of a request. */
export function readChoicesOf(cookie: string): void {
  read = () => cookie;
}

/** Returns a choice that this browser keeps, or null. */
export function readChoice(name: string): string | null {
  const start = `${PREFIX}${name}=`;
  const pair = read()
    .split("; ")
    .find((one) => one.startsWith(start));
  try {
    return pair === undefined ? null : decodeURIComponent(pair.slice(start.length));
  } catch {
    return null;
  }
}

/** Keeps a choice in this browser. If it refuses cookies, the choice holds until the page is closed. */
export function storeChoice(name: string, value: string): void {
  if (typeof document === "undefined" || readChoice(name) === value) return;
  const secure = window.location.protocol === "https:" ? "; Secure" : "";
  // biome-ignore lint/suspicious/noDocumentCookie: the cookie store is not there over http
  document.cookie = `${PREFIX}${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${KEPT_SECONDS}; SameSite=Strict${secure}`;
}
