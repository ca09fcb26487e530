/** JSON bodies that take longest to read, of about so many bytes. */

type Body = readonly [name: string, make: (octets: number) => string];

/** Values and keys that a body may have. */
const MOST_VALUES = 199_000;
/** Lists within one another that fit into a body. */
const DEPTH = 30;

const times = (count: number, item: (at: number) => string): string =>
  Array.from({ length: Math.floor(count) }, (_, at) => item(at)).join(",");

/** Time after which the messages are sent. Making one takes additional memory, which `limits` measures. */
const SENT_AFTER_MS = 60 * 60 * 1000;

/** Bodies for a send from an address. Those within all limits of JSON come first. */
export function worstBodies(from: string): readonly Body[] {
  const scheduledAt = new Date(Date.now() + SENT_AFTER_MS).toISOString();
  const send = (more: string): string =>
    `{"from":{"email":"${from}"},"to":[{"email":"ana@there0.test"}],"scheduledAt":"${scheduledAt}","subject":"Hello","text":"Hello",${more}}`;
  const attached = (content: string): string =>
    send(`"attachments":[{"filename":"a.bin","content":"${content}"}]`);
  return [
    ["attachment in base64", (octets) => attached("QUJD".repeat(Math.min(octets, 24 * 1024 * 1024) / 4))],
    ["one long string", (octets) => send(`"x":"${"a".repeat(octets)}"`)],
    ["one long string as html", (octets) => send(`"html":"${"a".repeat(octets)}"`)],
    ["one string of UTF-8", (octets) => send(`"x":"${"é€".repeat(octets / 5)}"`)],
    ["one string of short escapes", (octets) => send(`"x":"${"\\n".repeat(octets / 2)}"`)],
    ["one string of unicode escapes", (octets) => send(`"x":"${"\\u4e00".repeat(octets / 6)}"`)],
    ["attachment in unicode escapes", (octets) => attached("\\u0041".repeat(Math.floor(octets / 24) * 4))],
    ["one string of quotes", (octets) => send(`"x":"${'\\"'.repeat(octets / 2)}"`)],
    [
      "many short strings",
      (octets) =>
        send(`"x":[${times(MOST_VALUES, (at) => `"${"b".repeat(octets / MOST_VALUES - 12)}${at}"`)}]`),
    ],
    [
      "many keys",
      (octets) => {
        const key = "k".repeat((2 * octets) / MOST_VALUES - 14);
        return send(`"data":{${times(MOST_VALUES / 2, (at) => `"${key}${at}":1`)}}`);
      },
    ],
    [
      "many deep lists",
      (octets) => {
        const pad = "c".repeat((octets * DEPTH) / MOST_VALUES - 70);
        const deep = `${"[".repeat(DEPTH)}"${pad}"${"]".repeat(DEPTH)}`;
        return send(`"data":{"x":[${times(MOST_VALUES / (DEPTH + 1), () => deep)}]}`);
      },
    ],
    [
      "many recipients",
      (octets) =>
        send(
          `"cc":[${times(MOST_VALUES / 3, () => `{"email":"${"d".repeat((3 * octets) / MOST_VALUES - 20)}"}`)}]`,
        ),
    ],
    ["white space", (octets) => send(`"x":1${" ".repeat(octets)}`)],
    ["white space around", (octets) => `${" ".repeat(octets)}${send('"x":1')}`],
    ["numbers past the limit", (octets) => send(`"x":[${"1,".repeat(octets / 2)}1]`)],
    ["depth past the limit", (octets) => send(`"x":${"[".repeat(octets)}`)],
    ["one long number", (octets) => send(`"x":${"1".repeat(octets)}`)],
  ];
}
