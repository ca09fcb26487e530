import { describe, expect, test } from "bun:test";
import { createResponseReader, type HttpResponse, type ReadState } from "../../../src/net/http-response.ts";

/** Reads an answer that comes in pieces of `octets` octets, until the reader wants no more. */
function read(answer: string, octets: number): { state: ReadState; response: HttpResponse | null } {
  const reader = createResponseReader();
  const bytes = Buffer.from(answer, "latin1");
  let state: ReadState = "reading";
  for (let at = 0; at < bytes.length && state === "reading"; at += octets)
    state = reader.push(bytes.subarray(at, at + octets));
  return { state, response: reader.response() };
}

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-One: 1\r\n\r\n";

describe("an answer is read the same in pieces of any size", () => {
  test.each<[name: string, answer: string, status: number, body: string]>([
    ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellothe rest", 200, "hello"],
    ["line feeds alone", "HTTP/1.1 404 No\nContent-Length: 2\n\nno", 404, "no"],
    ["line ends of both kinds", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok", 200, "ok"],
    ["chunks", `${CHUNKED}5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n`, 200, "hello!"],
    ["interim answers", `${"HTTP/1.1 100 Go on\r\n\r\n".repeat(8)}HTTP/1.1 204 No\r\n\r\n`, 204, ""],
    ["many fields", `HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(2000)}Content-Length: 1\r\n\r\nx`, 200, "x"],
  ])("with %s", (_name, answer, status, body) => {
    for (const octets of [1, 2, 3, 5, 64, answer.length]) {
      const { state, response } = read(answer, octets);
      expect(state).toBe("complete");
      expect([response?.status, response?.body.toString()]).toEqual([status, body]);
    }
  });
});

test("a head one octet over 16 KiB is malformed, in pieces of any size", () => {
  const head = (octets: number): string => {
    const begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: ";
    return `${begin}${"a".repeat(octets - begin.length - 4)}\r\n\r\n`;
  };
  for (const octets of [1, 7, 4096, 20_000]) {
    expect(read(head(16 * 1024), octets).state).toBe("complete");
    expect(read(head(16 * 1024 + 1), octets).state).toBe("malformed");
  }
});
