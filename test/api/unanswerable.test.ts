import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { type TestApi, testApi } from "../support/api.ts";
import { exchangeBytes } from "../support/raw-http.ts";

let api: TestApi;
let port: number;
beforeAll(async () => {
  api = await testApi({});
  ({ port } = await api.http.start());
});
afterAll(() => api.close());

const BODY = JSON.stringify({ url: "https://hooks.example/", eventTypes: ["*"] });
const CHUNK = `${BODY.length.toString(16)}\r\n${BODY}\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const ANNOUNCED = "Trailer: X-Checksum\r\nConnection: close\r\n";
const LENGTH = `Content-Length: ${BODY.length}\r\n`;

/** Returns the bytes of a POST that would add a webhook. */
function adding(fields: string, body: string): string {
  const key = `Authorization: Bearer ${api.acme.a.key}\r\n`;
  return `POST /v1/webhooks HTTP/1.1\r\nHost: localhost\r\n${key}Content-Type: application/json\r\n${fields}\r\n${body}`;
}

async function webhooks(): Promise<unknown[]> {
  return (await api.call("GET", "/v1/webhooks")).json.data as unknown[];
}

const ERRORS: readonly (readonly [string, string, string])[] = [
  ["a trailer field", CHUNKED, `${CHUNK}0\r\nX-Checksum: 1\r\n\r\n`],
  ["an announced trailer field", `${CHUNKED}${ANNOUNCED}`, `${CHUNK}0\r\nX-Checksum: 1\r\n\r\n`],
  ["an announced trailer field that is yet to come", `${CHUNKED}${ANNOUNCED}`, `${CHUNK}0\r\n`],
  ["an empty line behind its declared length", LENGTH, `${BODY}\r\n`],
  ["bytes behind its declared length", LENGTH, `${BODY}what is this\r\n\r\n`],
  ["a bad request behind it", CHUNKED, `${CHUNK}0\r\n\r\nGET / HTTP/1.1\r\n\r\n`],
];

test.each(ERRORS)("a body with %s is answered 400 and changes nothing", async (_, fields, body) => {
  const before = (await webhooks()).length;
  const { status } = await exchangeBytes(port, adding(fields, body), true);
  expect(status).toBe(400);
  expect(await webhooks()).toHaveLength(before);
});

// If a second request arrives before the first is answered, Bun closes the connection and passes the second to no
// handler. It does so even if the answer says `Connection: close`.
test("a request behind which another is pipelined changes nothing, because it gets no answer", async () => {
  const before = (await webhooks()).length;
  const bytes = adding(LENGTH, BODY) + adding(LENGTH, BODY);
  expect((await exchangeBytes(port, bytes, true)).status).toBe(0);
  expect(await webhooks()).toHaveLength(before);
});

const LATER: readonly (readonly [string, string, string, string])[] = [
  ["the end of its chunked body", CHUNKED, `${CHUNK}0\r\n`, "\r\n"],
  ["its body, after Expect in capitals", `${LENGTH}Expect: 100-Continue\r\n`, "", BODY],
];

test.each(LATER)("a request that sends %s later is carried out", async (_, fields, begun, rest) => {
  const before = (await webhooks()).length;
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(adding(fields, begun));
      setImmediate(() => socket.write(rest));
    });
    socket.on("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      resolve(`${data}`);
    });
  });
  expect(answer).toStartWith("HTTP/1.1 201 ");
  expect(await webhooks()).toHaveLength(before + 1);
});
