/** Numbers below a limit, the same in every run of a seed. */
export type Numbers = (below: number) => number;

/** Mulberry32: small, and without the short cycles of one multiplication. */
export function numbers(seed: number): Numbers {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const OPEN = "EHLO c.example\r\nMAIL FROM:<a@b.example> SIZE=20\r\nRCPT TO:<c@d.example>\r\n";
const MAIL = OPEN.slice(OPEN.indexOf("MAIL"));

/** Valid sessions, from which mutated ones are made. */
const SESSIONS = [
  `${OPEN}DATA\r\nSubject: x\r\n\r\nhello\r\n.\r\nQUIT\r\n`,
  `${OPEN}RCPT TO:<e@no.example>\r\nRCPT TO:<Postmaster>\r\nDATA\r\n..dots\r\n.\r\n${MAIL}DATA\r\n.\r\nQUIT\r\n`,
  `${OPEN}BDAT 6\r\nhello\rBDAT 5 LAST\r\n\nyou\r\nNOOP\r\n`,
  `${OPEN}BDAT 7 LAST\r\nQUIT\r\n.NOOP\r\n`,
  `HELO x\r\n${MAIL}RSET\r\n${MAIL}EHLO y\r\nDATA\r\nVRFY a\r\nHELP\r\n`,
  `EHLO x\r\nSTARTTLS\r\n${MAIL}`,
  `${OPEN}STARTTLS\r\n`,
  `EHLO x\r\nMAIL FROM:<> BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<\u00e9@d.example>\r\nDATA\r\n\u00e9\r\n.\r\n`,
  `${OPEN}DATA\r\na\n.\r\nMAIL FROM:<evil@b.example>\r\n.\r\nQUIT\r\n`,
  `${OPEN}DATA\r\n${"long line ".repeat(30)}\r\n.\r\nQUIT\r\n`,
  `AUTH PLAIN AAAA\r\nEXPN x\r\nWHAT\r\n${"NOOP\r\n".repeat(5)}QUIT\r\n`,
  `NOOP ${"x".repeat(2100)}\r\n${OPEN}DATA\r\n.\r\n`,
  `${"WHAT\r\n".repeat(19)}${OPEN}`,
  `${OPEN}BDAT 0\r\nBDAT 0 LAST\r\nBDAT 300\r\nGET / HTTP/1.1\r\n`,
];

/** Pieces that can be inserted anywhere. */
const PIECES = [
  "\r\n",
  "\r",
  "\n",
  ".",
  "\r\n.\r\n",
  "\n.\n",
  "\0",
  " ",
  "<",
  ">",
  '"',
  "\\",
  "@",
  ":",
  "=",
  "\xff",
  "\xc3",
  "DATA\r\n",
  "BDAT 3\r\n",
  "BDAT 2 LAST\r\n",
  "RSET\r\n",
  "STARTTLS\r\n",
  "QUIT\r\n",
  "EHLO z\r\n",
  "HELO z\r\n",
  "MAIL FROM:<>\r\n",
  "MAIL FROM:<a@b.example>\r\n",
  "RCPT TO:<c@d.example>\r\n",
  "RCPT TO:<x@no.example>\r\n",
  "NOOP\r\n",
  "SIZE=99999999999999999999",
  "SMTPUTF8",
  "[127.0.0.1]",
  "@a,@b:",
  "4294967296",
  "-1",
  "1e9",
];

type Mutation = (bytes: Buffer, next: Numbers) => Buffer;

function cut(bytes: Buffer, next: Numbers): [from: number, to: number] {
  const from = next(bytes.length + 1);
  return [from, from + next(Math.min(40, bytes.length - from) + 1)];
}

const MUTATIONS: readonly Mutation[] = [
  (bytes, next) => {
    if (bytes.length > 0) bytes[next(bytes.length)] = next(256);
    return bytes;
  },
  (bytes, next) => {
    const [from, to] = cut(bytes, next);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  (bytes, next) => {
    const [from, to] = cut(bytes, next);
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]);
  },
  (bytes, next) => {
    const at = next(bytes.length + 1);
    return Buffer.concat([
      bytes.subarray(0, at),
      Buffer.from(pick(PIECES, next), "latin1"),
      bytes.subarray(at),
    ]);
  },
  (bytes, next) => {
    const other = Buffer.from(pick(SESSIONS, next));
    return Buffer.concat([bytes.subarray(0, next(bytes.length + 1)), other.subarray(next(other.length))]);
  },
  (bytes, next) => bytes.subarray(0, next(bytes.length + 1)),
];

function pick<T>(all: readonly T[], next: Numbers): T {
  const one = all[next(all.length)];
  if (one === undefined) throw new Error("nothing to pick from");
  return one;
}

/** A session's octets, with some changed. */
export function mutatedSession(next: Numbers): Buffer {
  let bytes: Buffer = Buffer.from(pick(SESSIONS, next));
  for (let left = next(6); left > 0; left--) bytes = pick(MUTATIONS, next)(bytes, next);
  return bytes;
}

/** Octets of a message or of chunks, mostly those that matter to line ends and dots. */
export function mutatedText(next: Numbers): string {
  const letters = ["\r\n", "\r\n", "x", "y", ".", "\r\n.", "\r", "\n", "\0", "\xff", "\r\n.\r\n"];
  // Most inputs have no fault, so that accepted messages are tested as well.
  const some = next(3) > 0 ? 6 : letters.length;
  return Array.from({ length: next(20) }, () => letters[next(some)] ?? "x").join("");
}

/** The octets in pieces, at random places. */
export function pieces(bytes: Buffer, next: Numbers): Buffer[] {
  const all: Buffer[] = [];
  const longest = 1 + next(next(2) === 0 ? 4 : 200);
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + next(longest);
    // A copy, as from a socket: if code keeps a view of it, the view must not change.
    all.push(Buffer.from(bytes.subarray(at, at + length)));
    at += length;
  }
  return all;
}
