import { connect } from "node:net";

/** If a connection neither answers nor closes within this time, the test gives it up. */
const ANSWER_MS = 15_000;

export interface HeadAnswer {
  /** 0 if the connection was closed without an answer. */
  status: number;
  headers: Headers;
  body: string;
}

/**
 * Sends the bytes as they are and reads the answer until the server closes. Unless `stay` is set, the client
 * half-closes after sending, so that a server that expects more bytes does not wait for ever. A slow server may
 * then not answer at all.
 */
export function exchangeBytes(port: number, bytes: string, stays = false): Promise<HeadAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: "127.0.0.1", port }, () => {
      socket.write(Buffer.from(bytes, "latin1"));
      if (!stays) socket.end();
    });
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("no answer")));
    socket.on("data", (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on("error", reject);
    socket.on("close", () => resolve(readAnswer(Buffer.concat(chunks).toString("utf8"))));
  });
}

function readAnswer(text: string): HeadAnswer {
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, Math.max(end, 0)).split("\r\n");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { status: Number(first.split(" ")[1] ?? 0), headers, body: end < 0 ? "" : text.slice(end + 4) };
}

/** Host fields that keep to the grammar (RFC 9112 §3.2), short, unusual and empty ones among them. */
export const GOOD_HOSTS = [
  "localhost",
  "x",
  "api",
  "api:3000",
  "mail",
  "192.0.2.1",
  "[::1]",
  "[::1]:3000",
  "A.EXAMPLE.",
  "",
];

/** Host fields that break the grammar: a server must answer 400 (RFC 9112 §3.2). */
export const BAD_HOSTS = ["a b", "a<b>", "[::", "x:y", "a@b@c", "%zz", "a/b", "a\\b", "a?b", "a#b"];

const AFTER_HOST = "Host: localhost\r\nConnection: close\r\n";
const LONG_CHARS = 17_000;
const MANY_FIELDS = 300;

/** Heads that are not HTTP, or too large to read. The parser refuses them before there is a request. */
export const BAD_HEADS: readonly (readonly [string, string])[] = [
  ["NUL in the path", `GET /v1/domains/a\0b HTTP/1.1\r\n${AFTER_HOST}\r\n`],
  ["a tab in the path", `GET /v1/domains/a\tb HTTP/1.1\r\n${AFTER_HOST}\r\n`],
  ["a space in the path", `GET /v1/domains/a b HTTP/1.1\r\n${AFTER_HOST}\r\n`],
  ["another version", `GET /v1/domains HTTP/9.9\r\n${AFTER_HOST}\r\n`],
  ["no Host", "GET /v1/domains HTTP/1.1\r\nConnection: close\r\n\r\n"],
  ["NUL in a field", `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}X-Request-Id: a\0b\r\n\r\n`],
  ["a bare CR in a field", `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}X-Request-Id: a\rX-Injected: 1\r\n\r\n`],
  ["a bare LF in a field", `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}X-Request-Id: a\nX-Injected: 1\r\n\r\n`],
  ["a folded field", `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}X-Request-Id: a\r\n X-Injected: 1\r\n\r\n`],
  [
    "both lengths (request smuggling)",
    `POST /v1/domains HTTP/1.1\r\n${AFTER_HOST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    "two lengths (request smuggling)",
    `POST /v1/domains HTTP/1.1\r\n${AFTER_HOST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`,
  ],
  ["a negative length", `POST /v1/domains HTTP/1.1\r\n${AFTER_HOST}Content-Length: -1\r\n\r\n{}`],
  ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
];

/** Valid HTTP heads that are larger than the server reads. */
export const LARGE_HEADS: readonly (readonly [string, string])[] = [
  [
    "a field of 17000 characters",
    `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}X-A: ${"x".repeat(LONG_CHARS)}\r\n\r\n`,
  ],
  ["a path of 17000 characters", `GET /v1/domains/${"x".repeat(LONG_CHARS)} HTTP/1.1\r\n${AFTER_HOST}\r\n`],
  [
    "300 fields",
    `GET /v1/domains HTTP/1.1\r\n${AFTER_HOST}${Array.from({ length: MANY_FIELDS }, (_, at) => `X-${at}: 1\r\n`).join("")}\r\n`,
  ],
];
