/** Bodies of the message that the benches send: 1 KB of text and 4 KB of HTML, with links to track. */
export const TEXT = "A line of a plain message, as people write them.\n".repeat(21);
const LINKS = [1, 2, 3, 4, 5].map(
  (n) => `<p><a href="https://www.bench.example/read/${n}?from=mail&amp;list=${n}">Article ${n}</a></p>\n`,
);
export const HTML = `${LINKS.join("")}<p>${"A sentence of the message with <b>some</b> markup.</p>\n<p>".repeat(63)}</p>`;

/** Returns the text for one recipient. */
export function textTo(to: string): string {
  return `For ${to}.\n${TEXT}`;
}

/** Returns the body of a send to one recipient. It is unique, because a repeated body is stored only once. */
export function sendBody(from: string, to: string): string {
  const body = {
    from: { email: from, name: "Bench" },
    to: [{ email: to }],
    subject: "Measured",
    html: HTML,
    text: textTo(to),
  };
  return JSON.stringify(body);
}

/** Returns the recipient of the nth message, spread over this many domains. */
export function recipient(n: number, domains: number): string {
  return `person${n}@d${n % domains}.example`;
}
