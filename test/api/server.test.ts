import { afterEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { Type } from "@sinclair/typebox";
import Database from "libsql";
import { created, ok, raw } from "../../src/http/routing/answer.ts";
import { PIECEWISE_OCTETS } from "../../src/http/body/body.ts";
import { MAX_BODY_OCTETS_PER_OWNER } from "../../src/http/body/budget.ts";
import { BODY_BASE_MS, MIN_BODY_RATE, bodyTimeMs } from "../../src/http/body/body.ts";
import { LARGE_BODY_OCTETS } from "../../src/http/body/budget.ts";
import { DEFAULT_MAX_BODY_BYTES } from "../../src/http/pipeline/body-limits.ts";
import { openRoute, projectRoute } from "../../src/http/routing/route.ts";
import type { AnsweredRequest } from "../../src/http/pipeline/request-log.ts";
import { IDLE_TIMEOUT_SECONDS } from "../../src/http/server/listen.ts";
import type { Http } from "../../src/http/server/server.ts";
import { findProject } from "../../src/store/projects/projects.ts";
import { type TestApi, testApi, type TestApiOptions } from "../support/api.ts";
import { until } from "../support/poll.ts";

/** Milliseconds in which a socket's content has been read on this machine. */
const SETTLED_MS = 30;

let api: TestApi | null = null;
afterEach(async () => {
  await api?.close();
  api = null;
});

async function started(options: TestApiOptions = {}): Promise<{ api: TestApi; http: Http; port: number }> {
  api = await testApi(options);
  const { port } = await api.http.start();
  return { api, http: api.http, port };
}

/** Sends bytes and returns the answer until the server closes or `until` has come. */
function exchange(port: number, bytes: string, until: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString();
      if (got.includes(until)) socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(got));
  });
}

test("an idle connection outlives the 60 seconds for which proxies keep it", () => {
  /** Bun counts in steps of this many seconds, and closes up to one of them early. */
  const step = 4;
  expect(IDLE_TIMEOUT_SECONDS - step).toBeGreaterThan(60 + step);
});

describe("over a socket", () => {
  test("a body declared over the limit gets the error envelope before a byte of it is sent", async () => {
    const { port, api: running } = await started({ maxBodyBytes: 1000 });
    const head = [
      "POST /v1/domains HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${running.acme.a.key}`,
      "Content-Type: application/json",
      "Content-Length: 1001",
      "X-Request-Id: big-1",
    ];
    const got = await exchange(port, `${head.join("\r\n")}\r\n\r\n`, 'big-1"');
    expect(got).toStartWith("HTTP/1.1 413 ");
    expect(got.toLowerCase()).toContain("x-request-id: big-1");
    expect(got).toContain('"type":"payload_too_large"');
  });

  test("a chunked body over the limit gets the error envelope while it is still being sent", async () => {
    const { port, api: running } = await started({ maxBodyBytes: 1000 });
    const head = [
      "POST /v1/domains HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${running.acme.a.key}`,
      "Content-Type: application/json",
      "Transfer-Encoding: chunked",
      "X-Request-Id: big-2",
    ];
    const chunk = `3e8\r\n${"x".repeat(1000)}\r\n`;
    const got = await exchange(port, `${head.join("\r\n")}\r\n\r\n${chunk}${chunk}`, 'big-2"');
    expect(got).toStartWith("HTTP/1.1 413 ");
    expect(got).toContain('"type":"payload_too_large"');
  });

  test("a key revoked by another process is refused from the next request on, even within one of our turns", async () => {
    const { port, api: running } = await started();
    const { db } = running;
    const file = await db.first<{ file: string }>("PRAGMA database_list");
    const other = new Database(file?.file ?? "", { timeout: 5000 });
    const request = `GET /v1/webhooks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${running.acme.a.key}\r\n`;
    const socket = connect(port, "127.0.0.1");
    const answered = () =>
      new Promise<string>((resolve) => socket.once("data", (data) => resolve(`${data}`)));
    const ask = () => socket.write(`${request}\r\n`);
    try {
      await new Promise((resolve) => socket.once("connect", resolve));
      const first = answered();
      ask();
      expect(await first).toStartWith("HTTP/1.1 200 ");
      const second = answered();
      // Sockets are read between what this one reads and the next immediate.
      await new Promise((resolve) => setImmediate(resolve));
      for (let read = 0; read < 3; read++) await findProject(db, running.acme.id, running.acme.a.id);
      other.exec("UPDATE api_keys SET revoked_at = 1");
      ask();
      expect(await second).toStartWith("HTTP/1.1 401 ");
    } finally {
      socket.destroy();
      other.close();
    }
  });

  test("a target that is not a path is 404, not a 405 that allows the same method", async () => {
    const { port } = await started();
    const head = "GET /v1/domains#x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: hash-1";
    const got = await exchange(port, `${head}\r\n\r\n`, 'hash-1"');
    expect(got).toStartWith("HTTP/1.1 404 ");
    expect(got).toContain('"type":"not_found"');
    expect(got.toLowerCase()).not.toContain("\r\nallow:");
  });

  test("a handler gets the peer's address", async () => {
    const route = openRoute({
      method: "GET",
      path: "/ip",
      operationId: "ip",
      summary: "Shows the peer",
      answers: { 200: Type.Any() },
      handle: ({ ip }) => ok({ ip }),
    });
    const { port } = await started({ routes: () => [route] });
    expect(await (await fetch(`http://127.0.0.1:${port}/ip`)).json()).toEqual({ ip: "127.0.0.1" });
  });

  test("each answer of a route is counted by its pattern, never by its path", async () => {
    const seen: AnsweredRequest[] = [];
    const { port, api: running } = await started({
      http: { onAnswer: (answered) => void seen.push(answered) },
    });
    const headers = { authorization: `Bearer ${running.acme.a.key}` };
    await fetch(`http://127.0.0.1:${port}/v1/domains/dom_x`, { headers });
    expect(seen).toEqual([
      {
        requestId: expect.stringMatching(/^req_/),
        method: "GET",
        route: "/v1/domains/:id",
        status: 404,
        durationMs: 0,
      },
    ]);
  });
});

describe("a stop", () => {
  const slow = () => {
    let release: () => void = () => undefined;
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const route = openRoute({
      method: "GET",
      path: "/slow",
      operationId: "slow",
      summary: "Answers when told",
      answers: { 200: Type.Any() },
      async handle() {
        await new Promise<void>((resolve) => {
          release = resolve;
          begin();
        });
        return ok({ done: true });
      },
    });
    return { route, begun, release: () => release() };
  };

  test("a stop waits for running requests and accepts no new one", async () => {
    const { route, begun, release } = slow();
    const { port, http } = await started({ routes: () => [route] });
    const answer = fetch(`http://127.0.0.1:${port}/slow`);
    await begun;
    const stopped = http.stop(60_000);
    // Connections made in its first moments are served, and closed.
    await until(() =>
      fetch(`http://127.0.0.1:${port}/livez`).then(
        () => false,
        () => true,
      ),
    );
    release();
    expect(await (await answer).json()).toEqual({ done: true });
    await stopped;
  });

  test("answers a request that was sent before it on an idle connection, and announces that it closes that", async () => {
    const { port, http } = await started();
    const socket = connect(port, "127.0.0.1");
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.on("close", resolve));
    const ask = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    socket.write(ask);
    await until(() => got.endsWith('{"status":"ok"}'));
    expect(got.toLowerCase()).not.toContain("connection: close");
    got = "";
    socket.write(ask);
    await http.stop(5000);
    await closed;
    expect(got).toStartWith("HTTP/1.1 200 ");
    expect(got.toLowerCase()).toContain("\r\nconnection: close\r\n");
  });

  test.each([
    ["begun before it", 0],
    ["requested before it, and begun during it", 1],
  ])("finishes a streamed answer: %s", async (_, after) => {
    const piece = new Uint8Array(64 * 1024).fill(0x61);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let at = 0;
    const body = (): ReadableStream<Uint8Array> =>
      new ReadableStream(
        {
          async pull(controller) {
            if (at === 1) await held;
            if (at++ === 40) controller.close();
            else controller.enqueue(piece.slice());
          },
        },
        { highWaterMark: 0 },
      );
    const route = openRoute({
      method: "GET",
      path: "/stream",
      operationId: "stream",
      summary: "Answers a piece at a time",
      answers: { 200: "text/plain" },
      handle: async () => raw(body(), "text/plain"),
    });
    const { port, http } = await started({ routes: () => [route] });
    const socket = connect(port, "127.0.0.1");
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.on("close", resolve));
    const ask = (path: string): boolean => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    if (after === 1) {
      ask("/livez");
      await until(() => got.endsWith('{"status":"ok"}'));
      got = "";
    }
    ask("/stream");
    if (after === 0) await until(() => got.length > 1000);
    const stopped = http.stop(60_000);
    await until(() => got.length > 1000);
    release();
    await stopped;
    await closed;
    expect(got.toLowerCase().includes("connection: close")).toBe(after === 1);
    expect(got.match(/[a-z]{1000,}/g)?.join("").length).toBe(40 * 64 * 1024);
    expect(got).toEndWith("\r\n0\r\n\r\n");
  });

  test("cuts running requests when the grace period is over", async () => {
    const { route, begun } = slow();
    const { port, http, api: running } = await started({ routes: () => [route] });
    const answer = fetch(`http://127.0.0.1:${port}/slow`).then(
      () => "answered",
      () => "cut",
    );
    await begun;
    const stopped = http.stop(5000);
    running.clock.advance(5000);
    await stopped;
    expect(await answer).toBe("cut");
  });
});

test("a route without a body reads less than a large one, and another route one more", async () => {
  const running = await started({ maxBodyBytes: 2 * LARGE_BODY_OCTETS });
  const post = async (path: string, octets: number) =>
    (await running.api.call("POST", path, { body: `${" ".repeat(octets - 2)}{}` })).status;
  expect(await post("/v1/domains/dom_none/verify", LARGE_BODY_OCTETS - 1)).toBe(404);
  expect(await post("/v1/domains/dom_none/verify", LARGE_BODY_OCTETS)).toBe(413);
  expect(await post("/v1/domains", LARGE_BODY_OCTETS)).toBe(422);
});

/** How many messages its route has taken. */
let taken = 0;
/** A route whose bodies may be as large as one with a message, and one for small bodies. */
const MESSAGE_ROUTE = () => [
  projectRoute({
    method: "POST",
    path: "/v1/messages",
    operationId: "takeMessage",
    summary: "Takes a large body",
    scope: "emails:send",
    body: Type.Object({ domain: Type.String() }),
    bodyLimit: "message",
    answers: { 201: Type.Any() },
    handle({ body }) {
      taken++;
      return created(body);
    },
  }),
  projectRoute({
    method: "POST",
    path: "/v1/few-octets",
    operationId: "takeFewOctets",
    summary: "Takes a small body",
    scope: "emails:send",
    body: Type.Object({}),
    bodyLimit: 1000,
    answers: { 201: Type.Any() },
    handle: ({ body }) => created(body),
  }),
];

describe("a body is 413 one octet over what its route takes", () => {
  const most = 2 * DEFAULT_MAX_BODY_BYTES;
  const rows: [string, number, number][] = [
    ["/v1/webhooks", DEFAULT_MAX_BODY_BYTES, 422],
    ["/v1/webhooks", DEFAULT_MAX_BODY_BYTES + 1, 413],
    ["/v1/few-octets", 1000, 201],
    ["/v1/few-octets", 1001, 413],
    ["/v1/messages", most, 422],
    ["/v1/messages", most + 1, 413],
  ];
  test.each(rows)("%s with %p octets: %p", async (path, octets, status) => {
    const running = await started({ maxBodyBytes: most, routes: MESSAGE_ROUTE });
    const body = `${" ".repeat(octets - 2)}{}`;
    expect((await running.api.call("POST", path, { body })).status).toBe(status);
  });
});

describe("bodies that come slowly", () => {
  const head = (key: string, length: string): string =>
    [
      "POST /v1/messages HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      "X-Request-Id: slow-1",
      `${length}\r\n\r\n`,
    ].join("\r\n");

  interface Client {
    socket: Socket;
    got(): string;
    closed: Promise<void>;
  }

  /** Sends the head and the beginning of a body, and waits until the service waits for the rest. */
  async function begun(port: number, { clock }: TestApi, ...sent: string[]): Promise<Client> {
    const before = clock.pending();
    let got = "";
    const socket = connect(port, "127.0.0.1", () => {
      for (const bytes of sent) socket.write(bytes);
    });
    socket.on("data", (bytes) => {
      got += bytes.toString();
    });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await until(() => clock.pending() > before);
    return { socket, got: () => got, closed };
  }

  const LARGE = 10 * PIECEWISE_OCTETS;
  const body = JSON.stringify({ domain: "slow.example" });
  const padded = `${body}${" ".repeat(LARGE - body.length)}`;
  const rows: [string, string, string, string, number][] = [
    ["small", `Content-Length: ${body.length}`, "{", body.slice(1), bodyTimeMs(body.length)],
    ["large", `Content-Length: ${LARGE}`, "{", padded.slice(1), bodyTimeMs(1)],
    [
      ...(["of no declared length", "Transfer-Encoding: chunked", "1\r\n{\r\n"] as const),
      ...([`${(body.length - 1).toString(16)}\r\n${body.slice(1)}\r\n0\r\n\r\n`, bodyTimeMs(1)] as const),
    ],
  ];

  test.each(rows)(
    "bodies that come slowly have their time: one that is %s is accepted in its last millisecond",
    async (_name, length, first, rest, timeMs) => {
      const { api, port } = await started({ maxBodyBytes: LARGE, routes: MESSAGE_ROUTE });
      const client = await begun(port, api, head(api.acme.a.key, length), first);
      await Bun.sleep(SETTLED_MS);
      api.clock.advance(Math.ceil(timeMs) - 1);
      await Bun.sleep(SETTLED_MS);
      client.socket.write(rest);
      await until(() => client.got().includes("slow-1"));
      expect(client.got()).toStartWith("HTTP/1.1 201 ");
      client.socket.destroy();
    },
  );

  test.each(rows)(
    "bodies that come slowly have no more: one that is %s is answered 408 then, its connection ended, nothing taken",
    async (_name, length, first, _rest, timeMs) => {
      const { api, port } = await started({ maxBodyBytes: LARGE, routes: MESSAGE_ROUTE });
      const before = taken;
      const client = await begun(port, api, head(api.acme.a.key, length), first);
      await Bun.sleep(SETTLED_MS);
      api.clock.advance(BODY_BASE_MS);
      await Bun.sleep(SETTLED_MS);
      api.clock.advance(Math.ceil(timeMs) - BODY_BASE_MS);
      await client.closed;
      const [top = "", json = ""] = client.got().split("\r\n\r\n");
      expect(top).toStartWith("HTTP/1.1 408 ");
      expect(top.toLowerCase()).toContain("\r\nconnection: close");
      expect(JSON.parse(json)).toEqual({
        error: { type: "request_timeout", message: "The body came too slowly.", requestId: "slow-1" },
      });
      expect(taken).toBe(before);
      expect(api.clock.pending()).toBe(0);
    },
  );

  test("bodies that come slowly keep their time while they come at the minimum rate", async () => {
    const { api, port } = await started({ maxBodyBytes: 4 * 1024 * 1024, routes: MESSAGE_ROUTE });
    const seconds = 60;
    const whole = `${body}${" ".repeat(seconds * MIN_BODY_RATE - body.length)}`;
    const client = await begun(port, api, head(api.acme.a.key, `Content-Length: ${whole.length}`));
    for (let at = 0; at < whole.length; at += MIN_BODY_RATE) {
      api.clock.advance(1000);
      await Bun.sleep(1);
      client.socket.write(whole.slice(at, at + MIN_BODY_RATE));
      await Bun.sleep(1);
    }
    await until(() => client.got().includes("slow-1"));
    expect(client.got()).toStartWith("HTTP/1.1 201 ");
    client.socket.destroy();
  });

  const post = ({ call }: TestApi, key: string) =>
    call("POST", "/v1/webhooks", {
      key,
      body: { url: "https://hooks.example/", eventTypes: ["*"] },
      headers: { "content-length": "64" },
    });

  /** A client whose body uses all memory of its project except an octet, and does not end. */
  async function filling(api: TestApi, port: number, key: string): Promise<Client> {
    const client = await begun(port, api, head(key, `Content-Length: ${MAX_BODY_OCTETS_PER_OWNER}`));
    const piece = " ".repeat(1024 * 1024);
    for (let sent = piece.length; sent < MAX_BODY_OCTETS_PER_OWNER; sent += piece.length)
      await new Promise((resolve) => client.socket.write(piece, resolve));
    client.socket.write(" ".repeat(piece.length - 1));
    return client;
  }

  test.each(["time is over", "client breaks off"])(
    "block their own project by the octets that have arrived, and no other of the account, until their %s",
    async (end) => {
      const { api, port } = await started({ maxBodyBytes: MAX_BODY_OCTETS_PER_OWNER, routes: MESSAGE_ROUTE });
      const { a, b } = api.acme;
      let client = await filling(api, port, a.key);
      // If the last piece arrives while one of our requests is in progress, the large one is refused, so it starts
      // again.
      await until(async () => {
        const { status } = await post(api, a.key);
        if (client.got() === "") return status === 503;
        client.socket.destroy();
        client = await filling(api, port, a.key);
        return false;
      });
      expect((await post(api, b.key)).status).toBe(201);
      if (end === "client breaks off") client.socket.destroy();
      else {
        api.clock.advance(BODY_BASE_MS);
        await Bun.sleep(SETTLED_MS);
        api.clock.advance(bodyTimeMs(MAX_BODY_OCTETS_PER_OWNER) - BODY_BASE_MS);
        await client.closed;
        expect(client.got()).toStartWith("HTTP/1.1 408 ");
      }
      await until(async () => (await post(api, a.key)).status === 201);
    },
  );

  test("block no other project by their declared size", async () => {
    const { api, port } = await started({ maxBodyBytes: MAX_BODY_OCTETS_PER_OWNER, routes: MESSAGE_ROUTE });
    const { a } = api.acme;
    const client = await begun(port, api, head(a.key, `Content-Length: ${MAX_BODY_OCTETS_PER_OWNER}`), "{");
    expect((await post(api, a.key)).status).toBe(201);
    client.socket.destroy();
  });
});

describe("health", () => {
  test("livez and healthz answer whatever else is wrong; readyz names the failed checks, and not why", async () => {
    const checks = [
      { name: "database", run: async () => undefined },
      { name: "redis", run: () => Promise.reject(new Error("redis://user:secret@10.0.0.1")) },
    ];
    api = await testApi({ http: { checks } });
    for (const path of ["/livez", "/healthz"])
      expect((await api.call("GET", path, { key: null })).json).toEqual({ status: "ok" });
    const called = await api.call("GET", "/readyz", { key: null });
    expect(called.status).toBe(503);
    expect(called.json).toEqual({ status: "unavailable", checks: { database: "ok", redis: "failed" } });
  });

  test("readyz is 200 when everything works", async () => {
    api = await testApi({ http: { checks: [{ name: "database", run: async () => undefined }] } });
    expect((await api.call("GET", "/readyz", { key: null })).status).toBe(200);
  });

  test("readyz does not wait for a check that hangs", async () => {
    api = await testApi({ http: { checks: [{ name: "redis", run: () => new Promise(() => undefined) }] } });
    const called = api.call("GET", "/readyz", { key: null });
    while (api.clock.pending() === 0) await Promise.resolve();
    api.clock.advance(5000);
    expect((await called).json.checks).toEqual({ redis: "failed" });
  });
});

describe("the reference page", () => {
  test("loads its script only from this server, compressed and cached for good", async () => {
    api = await testApi({
      http: {
        docs: {
          script: new Blob(["/*script*/"]),
          version: "1.2.3",
          pages: [],
          sdk: async () => new Uint8Array(),
        },
      },
    });
    const page = await api.call("GET", "/docs", { key: null });
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const [inline = ""] = [...page.text.matchAll(/<script[^>]*>([^<]*)<\/script>/g)].map(([, text]) => text);
    const hash = createHash("sha256").update(inline).digest("base64");
    expect(page.headers.get("content-security-policy")).toContain(
      `default-src 'none'; script-src 'self' 'sha256-${hash}';`,
    );
    expect(inline.trim()).toBe("");
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? "");
    expect(sources).toEqual(["/docs/scalar-1.2.3.js"]);
    expect(page.text).not.toContain("https://");
    const headers = { "accept-encoding": "gzip" };
    const script = await api.http.fetch(new Request("http://localhost/docs/scalar-1.2.3.js", { headers }));
    expect(script.headers.get("content-encoding")).toBe("gzip");
    expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(new TextDecoder().decode(Bun.gunzipSync(await script.arrayBuffer()))).toEndWith("/*script*/");
    expect((await api.call("GET", "/docs/scalar-1.2.3.js", { key: null })).text).toEndWith("/*script*/");
  });

  test("the reference page is missing without its files, but the document is served", async () => {
    api = await testApi();
    expect((await api.call("GET", "/docs", { key: null })).status).toBe(404);
    expect((await api.call("GET", "/docs/json", { key: null })).status).toBe(200);
  });
});
