import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { Type } from "@sinclair/typebox";
import { ok } from "../../src/http/routing/answer.ts";
import { BODY_BASE_MS, bodyTimeMs } from "../../src/http/body/body.ts";
import { LARGE_ANSWER_LIMITS } from "../../src/http/pipeline/download.ts";
import { projectRoute, type Route } from "../../src/http/routing/route.ts";
import { CALL_LIMITS, CALL_OCTETS, MAX_FRAME_BYTES } from "../../src/http/routes/mcp.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";

/** Octets of a message: more than the sockets buffer for a client that does not read. */
const SIZE = 32 * 1024 * 1024;
const MESSAGE = "x".repeat(SIZE);
/** Answers of that size that fit into one project's share. Each is a little larger than its message. */
const AT_A_TIME = LARGE_ANSWER_LIMITS.perOwner / SIZE - 1;

/** Octets that make a call heavy, so that a client's connections suffice. */
const PADDING = 32 * 1024;

let api: TestApi;
let clock: ManualClock;
let port: number;
let sockets: Socket[];
/** Calls that wait, and what lets them end. */
let waiting: number;
let arrive: () => void;

function messages(): Route[] {
  const { promise, resolve } = Promise.withResolvers<void>();
  arrive = resolve;
  waiting = 0;
  const answers = { 200: Type.Any() };
  return [
    projectRoute({
      method: "GET",
      path: "/v1/emails/:id",
      operationId: "getEmail",
      summary: "Answers a large message",
      scope: "emails:read",
      answers,
      handle: () => ok({ text: MESSAGE }),
    }),
    projectRoute({
      method: "GET",
      path: "/v1/threads/:id",
      operationId: "getThread",
      summary: "Waits",
      scope: "threads:read",
      answers,
      handle() {
        waiting++;
        return promise.then(() => ok({ messages: [] }));
      },
    }),
  ];
}

beforeEach(async () => {
  clock = manualClock();
  sockets = [];
  api = await testApi({ routes: messages, http: { clock } });
  port = (await api.http.start()).port;
});
afterEach(async () => {
  arrive();
  for (const socket of sockets) socket.destroy();
  await api.close();
});

const call = (name: string, args = {}, meta = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: args, _meta: meta },
});
const READ = call("get_email", { id: "msg_1" });
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

function post(key: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: { ...HEADERS, authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON of a result has any shape.
async function resultOf(answer: Response): Promise<any> {
  return ((await answer.json()) as { result: unknown }).result;
}

/** A client that calls a tool and reads only the beginning of the answer. */
async function slow(key: string): Promise<Socket> {
  const body = JSON.stringify(READ);
  const head = Object.entries({ host: "localhost", ...HEADERS, authorization: `Bearer ${key}` });
  const socket = connect(port, "127.0.0.1", () => {
    const lines = [...head, ["content-length", body.length]].map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  });
  sockets.push(socket);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}

describe("an answer over MCP", () => {
  test("an answer over MCP holds a large message once, and says in its short text where that is", async () => {
    const answer = await post(api.acme.a.key, READ);
    expect(answer.headers.get("content-type")).toBe("application/json");
    const whole = await answer.text();
    expect(whole.length).toBeLessThan(SIZE + 64 * 1024);
    const { content, structuredContent } = JSON.parse(whole).result;
    expect(structuredContent.text).toHaveLength(SIZE);
    expect(content[0].text).toEndWith("(cut here; structuredContent holds all of it)");
  });

  test("an answer over MCP counts against its owner's memory until the client has read it", async () => {
    const { a, b } = api.acme;
    for (let count = 0; count < AT_A_TIME; count++) await slow(a.key);
    const isRefused = async (key: string) => (await resultOf(await post(key, READ))).isError === true;
    expect(await isRefused(a.key)).toBe(true);
    expect(await isRefused(b.key)).toBe(false);
    sockets[0]?.destroy();
    await until(async () => !(await isRefused(a.key)));
  });

  test("an answer over MCP is cut when the time of a body of its size is over", async () => {
    const socket = await slow(api.acme.a.key);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    clock.advance(BODY_BASE_MS + bodyTimeMs(2 * SIZE));
    await until(() => clock.pending() === 0);
    socket.resume();
    await closed;
  });

  test("an answer over MCP is not waited for by more calls of one owner than its share of memory holds", async () => {
    const { a, b } = api.acme;
    const wait = call("get_thread", { id: "thr_1" }, { padding: "x".repeat(PADDING) });
    const fit = Math.floor(CALL_LIMITS.perOwner / (CALL_OCTETS + JSON.stringify(wait).length));
    const calls = Array.from({ length: fit }, () => post(a.key, wait));
    await until(() => waiting === fit);
    expect((await post(a.key, wait)).status).toBe(503);
    const other = post(b.key, wait);
    arrive();
    for (const one of [...calls, other]) expect((await one).status).toBe(200);
  });
});

describe("/mcp", () => {
  test("refuses a batch", async () => {
    for (const batch of [[], [READ], [READ, READ]]) {
      const answer = await post(api.acme.a.key, batch);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ id: null, error: { code: -32_600 } });
    }
  });

  test("refuses a message that is large outside of its arguments", async () => {
    const padded = (octets: number) => ({
      ...READ,
      params: { ...READ.params, _meta: { x: "x".repeat(octets) } },
    });
    const answer = await post(api.acme.a.key, padded(MAX_FRAME_BYTES));
    expect([answer.status, (await answer.text()).includes("without arguments")]).toEqual([400, true]);
    expect((await post(api.acme.a.key, padded(MAX_FRAME_BYTES / 2))).status).toBe(200);
  });

  test("names a few of a thousand unknown arguments", async () => {
    const args = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`x${at}`, 1]));
    const { isError, content } = await resultOf(await post(api.acme.a.key, call("get_email", args)));
    expect([isError, content[0].text.length < 4000]).toEqual([true, true]);
  });

  test("refuses a subscription, which would never end", async () => {
    const answer = await post(api.acme.a.key, { jsonrpc: "2.0", id: 7, method: "subscriptions/listen" });
    expect(await answer.json()).toMatchObject({ id: 7, error: { code: -32_601 } });
  });

  test.each([null, "x", 1, {}, { method: 5 }])("answers %j with an error of JSON-RPC", async (body) => {
    const answer = await post(api.acme.a.key, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ jsonrpc: "2.0", error: { code: expect.any(Number) } });
  });

  test("answers a repeated Idempotency-Key again, because its calls have keys of their own", async () => {
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    for (let count = 0; count < 2; count++) {
      const answer = await post(api.acme.a.key, list, { "idempotency-key": "one" });
      expect((await resultOf(answer)).tools.length).toBeGreaterThan(5);
    }
  });

  const OWN = ["http://localhost:3000", "http://127.0.0.1:PORT", "http://localhost:PORT"];
  const FOREIGN = ["http://evil.test", "http://evil.test:PORT", "null", "x", "http://127.0.0.1:1"];
  test.each([
    ...OWN.map((origin) => [origin, 200] as const),
    ...FOREIGN.map((origin) => [origin, 403] as const),
  ])("answers a page of %s with %p", async (given, status) => {
    const origin = given.replace("PORT", String(port));
    // By DNS rebinding, the host that a browser asks for is that of the page.
    const host = URL.parse(origin)?.host;
    const answer = await post(
      api.acme.a.key,
      { jsonrpc: "2.0", id: 1, method: "ping" },
      { origin, ...(host === undefined || given.endsWith(":1") ? {} : { host }) },
    );
    expect(answer.status).toBe(status);
  });

  test("refuses a page of another origin before it looks at the key", async () => {
    expect((await post("pr_wrong", READ, { origin: "http://evil.test" })).status).toBe(403);
  });
});
