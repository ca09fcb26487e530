import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { systemClock } from "../../src/clock.ts";
import {
  MAX_RETRY_AFTER_SECONDS,
  type PostOutcome,
  type PostRequest,
  parseRetryAfter,
  post,
} from "../../src/net/post.ts";
import { exchangeHttp } from "../../src/net/http-exchange.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { type DnsRecord, startDns, type TestDns } from "../support/dns.ts";
import { type RawSink, startRawSink, startSink } from "../support/https-sink.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";
import { mayReach } from "../support/public-guard.ts";

const TIMEOUT_MS = 10_000;
let dns: TestDns;
let ca: KeyAndCert;
let cert: KeyAndCert;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  ca = await makeCa();
  cert = await makeCert(["hook.test", "second.test", "127.0.0.1"], ca);
  const a = (name: string, data: string): DnsRecord => ({ name, type: "A", data });
  dns = await startDns(
    a("hook.test", "127.0.0.1"),
    a("other.test", "127.0.0.1"),
    a("inside.test", "10.0.0.1"),
    a("metadata.test", "169.254.169.254"),
    { name: "mapped.test", type: "AAAA", data: "::ffff:127.0.0.1" },
    // No server listens on 127.0.0.2 at the ports of these tests.
    a("second.test", "127.0.0.2"),
    a("second.test", "127.0.0.1"),
  );
  dns.behave("servfail", "broken.test");
  dns.behave("silent", "mute.test");
});
afterAll(() => dns.stop());
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function send(
  url: string,
  change: Partial<PostRequest> = {},
  trusted: string | undefined = ca.cert,
): Promise<PostOutcome> {
  const resolver = createResolver(
    { clock: systemClock },
    { servers: [dns], tries: 1, tryTimeoutMs: TIMEOUT_MS },
  );
  const request = {
    url,
    headers: { "content-type": "application/json" },
    body: [Buffer.from('{"ü":1}')],
    timeoutMs: TIMEOUT_MS,
  };
  return post(
    { clock: systemClock, resolver, mayReach, ca: trusted },
    { ...request, allowPrivate: true, ...change },
  );
}

function sink(tls?: KeyAndCert): ReturnType<typeof startSink> {
  const started = startSink(tls);
  stops.push(started.stop);
  return started;
}

function rawSink(...given: Parameters<typeof startRawSink>): RawSink {
  const started = startRawSink(...given);
  stops.push(started.stop);
  return started;
}

describe("a request", () => {
  test("carries body, headers, path and the host's own name over verified TLS", async () => {
    const server = sink(cert);
    server.answer(() => new Response("thanks", { status: 201 }));
    const outcome = await send(`https://hook.test:${server.port}/in?x=1#f`, {
      headers: { "X-Sign": "t=1,v1=2" },
    });
    expect(outcome).toEqual({ kind: "answered", status: 201, body: Buffer.from("thanks") });
    const { method, path, headers, body } = await server.requests.reached(1);
    expect({ method, path, body }).toEqual({ method: "POST", path: "/in?x=1", body: '{"ü":1}' });
    expect(headers.get("host")).toBe(`hook.test:${server.port}`);
    expect(headers.get("x-sign")).toBe("t=1,v1=2");
  });

  test("sets its own framing: headers given for that are left out", async () => {
    const server = sink(cert);
    const given = {
      Host: "elsewhere.test",
      "content-length": "1",
      Connection: "keep-alive",
      "Transfer-Encoding": "chunked",
    };
    expect(await send(`https://hook.test:${server.port}/`, { headers: given })).toMatchObject({
      status: 200,
    });
    const { headers, body } = await server.requests.reached(1);
    expect(
      ["host", "content-length", "connection", "transfer-encoding"].map((name) => headers.get(name)),
    ).toEqual([`hook.test:${server.port}`, String(Buffer.byteLength(body)), "close", null]);
  });

  test("a request goes to an address whose certificate names it", async () => {
    const server = sink(cert);
    expect(await send(`https://127.0.0.1:${server.port}/`)).toMatchObject({ status: 200 });
  });

  test("a request goes to the next address if the first takes no connection", async () => {
    const server = sink(cert);
    expect(await send(`https://second.test:${server.port}/`)).toMatchObject({ status: 200 });
  });

  test("a request of 300 KB in pieces arrives whole", async () => {
    const server = sink(cert);
    const pieces = ["<", "y".repeat(200_000), "z".repeat(100_000), ">"];
    await send(`https://hook.test:${server.port}/`, { body: pieces.map((piece) => Buffer.from(piece)) });
    expect((await server.requests.reached(1)).body).toBe(pieces.join(""));
  });

  test("a request goes to the checked address even if the environment names a proxy", async () => {
    const server = sink();
    const before = process.env.HTTP_PROXY;
    process.env.HTTP_PROXY = "http://127.0.0.1:9";
    const outcome = await send(`http://localhost:${server.port}/`);
    if (before === undefined) delete process.env.HTTP_PROXY;
    else process.env.HTTP_PROXY = before;
    expect(outcome).toMatchObject({ status: 200 });
  });
});

describe("TLS", () => {
  test("is not sent if the certificate is for another name", async () => {
    const server = sink(cert);
    const outcome = await send(`https://other.test:${server.port}/`);
    expect(outcome).toMatchObject({ kind: "failed", reason: expect.stringContaining("ALTNAME") });
    expect(server.requests.items).toHaveLength(0);
  });

  test("is not sent if the certificate's authority is unknown", async () => {
    const server = sink(await makeCert(["hook.test"]));
    expect(await send(`https://hook.test:${server.port}/`)).toMatchObject({ kind: "failed" });
    expect(await send(`https://hook.test:${sink(cert).port}/`, {}, cert.cert)).toMatchObject({
      kind: "failed",
    });
    expect(server.requests.items).toHaveLength(0);
  });

  test("sends a server name, and for an address none", async () => {
    const names: unknown[] = [];
    const server = createTlsServer({ key: cert.key, cert: cert.cert }, (socket) => {
      names.push(socket.servername);
      socket.end("HTTP/1.1 204 No Content\r\n\r\n");
    });
    stops.push(() => server.close());
    const { port } = await new Promise<AddressInfo>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve(server.address() as AddressInfo));
    });
    expect(await send(`https://hook.test:${port}/`)).toMatchObject({ status: 204 });
    expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ status: 204 });
    expect(names).toEqual(["hook.test", false]);
  });

  test("is not sent if the certificate is for another address", async () => {
    const server = sink(await makeCert(["127.0.0.2"], ca));
    expect(await send(`https://127.0.0.1:${server.port}/`)).toMatchObject({
      reason: expect.stringContaining("ALTNAME"),
    });
    expect(server.requests.items).toHaveLength(0);
  });

  test("fails at a server without TLS", async () => {
    expect(await send(`https://hook.test:${sink().port}/`)).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("TLS"),
    });
  });
});

describe("refused without a connection", () => {
  const rows: [url: string, change: Partial<PostRequest>, reason: string][] = [
    ["not a url", {}, "not a URL"],
    ["ftp://hook.test/", {}, "must be https"],
    ["http://hook.test/", { allowPrivate: false }, "must be https"],
    ["https://user:pass@hook.test/", {}, "credentials"],
    ["https://hook.test/", { allowPrivate: false }, "no public address"],
    ["https://inside.test/", { allowPrivate: false }, "no public address"],
    ["https://metadata.test/", { allowPrivate: false }, "no public address"],
    ["https://mapped.test/", { allowPrivate: false }, "no public address"],
    ["https://localhost/", { allowPrivate: false }, "no public address"],
    ["https://localhost./", { allowPrivate: false }, "no public address"],
    ["https://127.0.0.1/", { allowPrivate: false }, "no public address"],
    ["https://0x7f.1/", { allowPrivate: false }, "no public address"],
    ["https://2130706433/", { allowPrivate: false }, "no public address"],
    ["https://[::1]/", { allowPrivate: false }, "no public address"],
    ["https://[::ffff:10.0.0.1]/", { allowPrivate: false }, "no public address"],
    ["https://none.test/", {}, "no address"],
    ["https://broken.test/", {}, "servfail"],
    ["https://hook.test/", { headers: { "X-A": "b\r\nX-Evil: 1" } }, "header"],
    ["https://hook.test/", { headers: { "X A": "b" } }, "header"],
  ];
  test.each(rows)("%s %j: %s", async (url, change, reason) => {
    expect(await send(url, change)).toEqual({ kind: "failed", reason: expect.stringContaining(reason) });
  });
});

describe("an answer", () => {
  test("an answer of 3xx is not followed", async () => {
    const target = sink();
    const server = sink();
    server.answer(() => Response.redirect(target.url, 302));
    expect(await send(`http://localhost:${server.port}/`)).toMatchObject({ kind: "answered", status: 302 });
    expect(target.requests.items).toHaveLength(0);
  });

  const head = "HTTP/1.1 200 OK\r\n";
  const rows: [name: string, octets: string, then: "end" | "wait", status: number, body: string][] = [
    ["with a length", `${head}Content-Length: 2\r\n\r\nhi and more`, "wait", 200, "hi"],
    [
      "in chunks",
      `${head}Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n`,
      "wait",
      200,
      "hi yo",
    ],
    ["until the end", `${head}\r\nhi`, "end", 200, "hi"],
    ["cut off", `${head}Content-Length: 9\r\n\r\nhi`, "end", 200, "hi"],
    [
      "broken after its head",
      `${head}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nxyz\r\n`,
      "wait",
      200,
      "hi",
    ],
    ["without a body", "HTTP/1.1 204 No Content\r\n\r\n", "wait", 204, ""],
    [
      "after an interim response",
      `HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n`,
      "wait",
      410,
      "",
    ],
    [
      "with lines that end with LF only",
      "HTTP/1.1 200 OK\nContent-Length: 4\n\nhi\n\n and more",
      "wait",
      200,
      "hi\n\n",
    ],
    ["with both ends of lines", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nhi\n\n", "wait", 200, "hi"],
    [
      "with a field over several lines",
      `${head}X: a\r\n b\r\n\t c: d\r\nContent-Length:\r\n 2\r\n\r\nhi`,
      "wait",
      200,
      "hi",
    ],
    ["of HTTP/1.0 without a reason", "HTTP/1.0 500\r\n\r\n", "end", 500, ""],
  ];
  test.each(rows)("%s is read", async (_, octets, then, status, body) => {
    const outcome = await send(`http://localhost:${rawSink(octets, then).port}/`);
    expect(outcome).toEqual({ kind: "answered", status, body: Buffer.from(body) });
  });

  test.each([
    ["of another protocol", "SSH-2.0-x\r\n\r\n"],
    ["with a bad field", `${head}no colon\r\n\r\n`],
    ["with a bad length", `${head}Content-Length: -1\r\n\r\n`],
    ["of interim heads without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(9)],
    ["whose head is over the limit", `${head}X: ${"y".repeat(17_000)}`],
  ])("%s is refused", async (_, octets) => {
    const outcome = await send(`http://localhost:${rawSink(octets).port}/`);
    expect(outcome).toEqual({ kind: "failed", reason: "malformed HTTP answer" });
  });

  test("an answer that never completes fails when the connection closes", async () => {
    expect(await send(`http://localhost:${rawSink("", "end").port}/`)).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("closed"),
    });
  });

  test.each([
    ["plain", `${head}\r\n`],
    ["announced as 10 GB", `${head}Content-Length: 10000000000\r\n\r\n`],
    ["one endless chunk", `${head}Transfer-Encoding: chunked\r\n\r\nffffffff\r\n`],
  ])("an answer without end, %s, is cut after 4 KiB", async (_, octets) => {
    const server = rawSink(octets, "endless", cert);
    const outcome = await send(`https://hook.test:${server.port}/`);
    expect(outcome.kind === "answered" && outcome.body.length).toBe(4096);
    await server.closed.reached(1);
    // As much as fits in the buffers of both ends, and no more.
    expect(server.taken()).toBeLessThan(32 * 1024 * 1024);
  });

  test("an answer may say when to try again", async () => {
    const server = rawSink("HTTP/1.1 503 No\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n");
    expect(await send(`http://localhost:${server.port}/`)).toMatchObject({
      status: 503,
      retryAfterSeconds: 120,
    });
  });
});

/** Posts to an endpoint that has fifteen seconds. */
function postFor15s(
  deps: Omit<Parameters<typeof post>[0], "mayReach">,
  url: string,
): ReturnType<typeof post> {
  return post({ ...deps, mayReach }, { url, headers: {}, body: [], timeoutMs: 15_000, allowPrivate: true });
}

describe("time", () => {
  test("ends for an endpoint that does not answer, and the connection is closed", async () => {
    const server = rawSink("");
    const clock = manualClock();
    const resolver = createResolver({ clock }, { servers: [dns] });
    const url = `http://localhost:${server.port}/`;
    const posted = postFor15s({ clock, resolver }, url);
    await server.answered.reached(1);
    clock.advance(15_000);
    expect(await posted).toEqual({ kind: "failed", reason: "timeout" });
    await server.closed.reached(1);
    expect(clock.pending()).toBe(0);
  });

  test("ends for an answer that has its status but no end", async () => {
    const server = rawSink("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    const outcome = await send(`http://localhost:${server.port}/`, { timeoutMs: 300 });
    expect(outcome).toEqual({ kind: "answered", status: 200, body: Buffer.from("half") });
  });

  test("ends for a connection that comes late, and nothing is sent on it", async () => {
    const server = rawSink("");
    const clock = manualClock();
    const octets = Buffer.from("POST / HTTP/1.1\r\n\r\n");
    const to = { ip: "127.0.0.1", port: server.port, tlsName: null, octets: [octets] };
    const asking = exchangeHttp({ clock }, { ...to, timeoutMs: 100, connectTimeoutMs: 50 });
    clock.advance(50);
    expect(await asking).toEqual({ kind: "failed", reason: "connection timed out", connected: false });
    await server.closed.reached(1);
    expect(server.answered.items).toEqual([]);
  });

  test("ends for a lookup that is not answered", async () => {
    const asked = dns.queries.items.length;
    const outcome = send("https://mute.test/", { timeoutMs: 30 });
    await dns.queries.reached(asked + 1);
    expect(await outcome).toEqual({ kind: "failed", reason: "timeout" });
  });
});

test.each([
  ["0", 0],
  ["120", 120],
  ["99999999", MAX_RETRY_AFTER_SECONDS],
  ["Sun, 15 Jun 2025 15:07:10 GMT", 30],
  ["Sun, 15 Jun 2025 15:00:00 GMT", 0],
  ["Sunday, 15-Jun-25 15:07:10 GMT", 30],
  ["Sun Jun 15 15:07:10 2025", 30],
  ["9".repeat(30), MAX_RETRY_AFTER_SECONDS],
  ["soon", null],
  ["-5", null],
  ["1.5", null],
  ["", null],
  [undefined, null],
])("Retry-After %p is %p seconds", (text, seconds) => {
  expect(parseRetryAfter(text, Date.UTC(2025, 5, 15, 15, 6, 40))).toBe(seconds);
});
