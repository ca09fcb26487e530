import { Type } from "@sinclair/typebox";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { notFound } from "../../src/core/errors.ts";
import { ok, raw } from "../../src/http/routing/answer.ts";
import { BODY_BASE_MS, bodyTimeMs } from "../../src/http/body/body.ts";
import { LARGE_ANSWER_LIMITS, createDownloads, READ_BEFORE } from "../../src/http/pipeline/download.ts";
import { openRoute, projectRoute, type Route } from "../../src/http/routing/route.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";

/** Octets of a download: more than the sockets buffer for a client that does not read. */
const SIZE = 32 * 1024 * 1024;
/** As many as one project may have at a time. */
const AT_A_TIME = LARGE_ANSWER_LIMITS.perOwner / SIZE;
const WHOLE = new Uint8Array(SIZE).map((_, at) => (at * 7 + (at >> 8) * 31) & 255);
/** A string of that many octets in JSON, and of fewer characters: two octets each. */
const LETTERS = "é".repeat(SIZE / 2);
/** Octets of a record around its text. */
const AROUND = JSON.stringify({ text: "" }).length;
/** Milliseconds in which a socket's content has been read on this machine. */
const SETTLED_MS = 50;

let api: TestApi;
let clock: ManualClock;
let port: number;
let sockets: Socket[];
/** Records that have been read. */
let reads = 0;
/** Ends the requests of a test whose answers it has not read to the end. The server would wait for them when it stops. */
let leaves: AbortController;

function download(): Route[] {
  const handOut = createDownloads(clock);
  return [
    projectRoute({
      method: "GET",
      path: "/v1/download/:octets",
      operationId: "download",
      summary: "Hands out bytes",
      scope: "emails:read",
      answers: { 200: "*/*" },
      async handle({ senderId, params }) {
        const bytes = WHOLE.subarray(0, Number(params.octets));
        const pieces = (async function* () {
          yield bytes;
        })();
        const body = await handOut(senderId, { size: bytes.length, held: bytes.length, pieces });
        return raw(body, "application/octet-stream");
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/record/:chars",
      operationId: "record",
      summary: "Answers a record",
      scope: "emails:read",
      answers: { 200: Type.Object({ text: Type.String() }) },
      handle: ({ params }) => ok({ text: LETTERS.slice(0, Number(params.chars)) }),
    }),
    projectRoute({
      method: "POST",
      path: "/v1/changes",
      operationId: "change",
      summary: "Answers a change with a record",
      scope: "emails:read",
      answers: { 200: Type.Object({ text: Type.String() }) },
      handle: () => ok({ text: LETTERS }),
    }),
    projectRoute({
      method: "POST",
      path: "/v1/reads",
      operationId: "read",
      summary: "Answers a record and changes nothing",
      scope: "emails:read",
      readsOnly: true,
      answers: { 200: Type.Object({ text: Type.String() }) },
      handle: () => ok({ text: LETTERS }),
    }),
    openRoute({
      method: "GET",
      path: "/open/:kind",
      operationId: "open",
      summary: "Answers anybody",
      answers: { 200: "*/*" },
      handle: ({ params }) => raw(params.kind === "text" ? LETTERS : WHOLE, "text/plain"),
    }),
    projectRoute({
      method: "GET",
      path: "/v1/expected/:chars",
      operationId: "expected",
      summary: "Answers a record that is read once there is room for it; none of no characters",
      scope: "emails:read",
      answers: { 200: Type.Object({ text: Type.String() }) },
      async handle({ params, expectAnswer }) {
        expectAnswer(SIZE);
        reads++;
        await Bun.sleep(SETTLED_MS);
        if (params.chars === "0") throw notFound("record");
        return ok({ text: LETTERS.slice(0, Number(params.chars)) });
      },
    }),
  ];
}

beforeEach(async () => {
  clock = manualClock();
  sockets = [];
  leaves = new AbortController();
  api = await testApi({ routes: download, http: { clock } });
  port = (await api.http.start()).port;
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  leaves.abort();
  await api.close();
});

/** Requests a path. An empty key sends none. */
function ask(path: string, key: string, method = "GET"): Promise<Response> {
  const headers: Record<string, string> = key === "" ? {} : { authorization: `Bearer ${key}` };
  return fetch(`http://127.0.0.1:${port}${path}`, { method, headers, signal: leaves.signal });
}

const get = (key: string, octets: number) => ask(`/v1/download/${octets}`, key);

/** A client that requests that much and reads only the beginning. */
async function slow(key: string, path = `/v1/download/${SIZE}`, method = "GET"): Promise<Socket> {
  const before = clock.pending();
  const socket = connect(port, "127.0.0.1", () =>
    socket.write(
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    ),
  );
  sockets.push(socket);
  socket.once("data", () => socket.pause());
  await until(() => clock.pending() > before);
  return socket;
}

describe("large downloads", () => {
  test.each([READ_BEFORE, READ_BEFORE + 1, SIZE])(
    "of %p octets arrive complete, and leave nothing behind",
    async (octets) => {
      const answer = await get(api.acme.a.key, octets);
      const bytes = new Uint8Array(await answer.arrayBuffer());
      expect(answer.status).toBe(200);
      expect(Buffer.compare(bytes, WHOLE.subarray(0, octets))).toBe(0);
      expect(clock.pending()).toBe(0);
    },
  );

  test("large downloads that clients do not read use up their own project's limit, until one is aborted", async () => {
    const { a, b } = api.acme;
    for (let count = 0; count < AT_A_TIME; count++) await slow(a.key);
    const refused = await get(a.key, SIZE);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.json()).toMatchObject({ error: { type: "service_unavailable" } });
    expect((await get(a.key, READ_BEFORE)).status).toBe(200);
    expect((await get(b.key, SIZE)).status).toBe(200);
    sockets[0]?.destroy();
    await until(async () => (await get(a.key, SIZE)).status === 200);
  });

  test("large downloads are cut when their time is over, and not before, and the client sees that", async () => {
    const { a } = api.acme;
    const socket = await slow(a.key);
    await Bun.sleep(SETTLED_MS);
    clock.advance(BODY_BASE_MS);
    await Bun.sleep(SETTLED_MS);
    expect(clock.pending()).toBe(1);
    clock.advance(bodyTimeMs(SIZE) - BODY_BASE_MS);
    await until(() => clock.pending() === 0);
    let tail = "";
    socket.on("data", (bytes) => {
      tail = `${tail}${bytes.toString("latin1")}`.slice(-5);
    });
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    expect(tail).not.toBe("0\r\n\r\n");
    for (let count = 0; count < AT_A_TIME; count++) await slow(a.key);
  });

  test("a large download that is never read, as for HEAD, frees its memory in time", async () => {
    const { a } = api.acme;
    for (let count = 0; count < AT_A_TIME; count++) await ask(`/v1/download/${SIZE}`, a.key, "HEAD");
    clock.advance(BODY_BASE_MS);
    await until(() => clock.pending() === 0);
    expect((await get(a.key, SIZE)).status).toBe(200);
  });
});

describe("large JSON answers", () => {
  const record = (key: string, chars: number) => ask(`/v1/record/${chars}`, key);

  test.each([(READ_BEFORE - AROUND) / 2, READ_BEFORE / 2, LETTERS.length])(
    "of a text of %p letters arrive complete, and leave nothing behind",
    async (chars) => {
      const answer = await record(api.acme.a.key, chars);
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(await answer.json()).toEqual({ text: LETTERS.slice(0, chars) });
      expect(clock.pending()).toBe(0);
    },
  );

  const expected = (key: string, chars: number) => ask(`/v1/expected/${chars}`, key);

  test("large JSON answers that would exceed the limit are refused before they are read", async () => {
    reads = 0;
    const { a, b } = api.acme;
    const asked = await Promise.all(Array.from({ length: 4 * AT_A_TIME }, () => expected(a.key, 10)));
    const refused = asked.filter(({ status }) => status === 503);
    expect([reads, refused.length]).toEqual([AT_A_TIME, 3 * AT_A_TIME]);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
    expect((await expected(b.key, 10)).status).toBe(200);
  });

  test.each([
    ["less than was expected", 10, 200],
    ["an error", 0, 404],
  ])("a large JSON answer that becomes %s frees its memory", async (_, chars, status) => {
    for (let count = 0; count < 2; count++) {
      const key = api.acme.a.key;
      const asked = await Promise.all(Array.from({ length: AT_A_TIME }, () => expected(key, chars)));
      expect(asked.map((answer) => answer.status)).toEqual(Array(AT_A_TIME).fill(status));
    }
  });

  test("large JSON answers that clients do not read use up only their own project's limit, until their time is over", async () => {
    const { a, b } = api.acme;
    const fit = Math.floor(LARGE_ANSWER_LIMITS.perOwner / (SIZE + AROUND));
    for (let count = 0; count < fit; count++) await slow(a.key, `/v1/record/${LETTERS.length}`);
    const refused = await record(a.key, LETTERS.length);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect((await record(a.key, 1000)).status).toBe(200);
    expect((await record(b.key, LETTERS.length)).status).toBe(200);
    clock.advance(BODY_BASE_MS);
    await Bun.sleep(SETTLED_MS);
    clock.advance(bodyTimeMs(SIZE + AROUND));
    await until(() => clock.pending() === 0);
    expect((await record(a.key, LETTERS.length)).status).toBe(200);
  });

  test("large JSON answers to a change are sent without room too, and are cut when their time is over", async () => {
    const { key } = api.acme.a;
    const post = (path: string) => ask(`/v1/${path}`, key, "POST");
    const fit = Math.floor(LARGE_ANSWER_LIMITS.perOwner / (SIZE + AROUND));
    for (let count = 0; count <= fit; count++) await slow(key, "/v1/changes", "POST");
    expect((await post("changes")).status).toBe(200);
    expect((await post("reads")).status).toBe(503);
    clock.advance(BODY_BASE_MS);
    await Bun.sleep(SETTLED_MS);
    clock.advance(bodyTimeMs(SIZE + AROUND));
    await until(() => clock.pending() === 0);
    expect((await post("reads")).status).toBe(200);
  });

  test.each(["text", "bytes"])("of %s without a key share one limit and have their time", async (kind) => {
    const path = `/open/${kind}`;
    const get = () => ask(path, "");
    expect((await (await get()).bytes()).length).toBe(SIZE);
    for (let count = 0; count < AT_A_TIME; count++) await slow("", path);
    expect((await get()).status).toBe(503);
    clock.advance(BODY_BASE_MS);
    await Bun.sleep(SETTLED_MS);
    clock.advance(bodyTimeMs(SIZE));
    await until(() => clock.pending() === 0);
    expect((await get()).status).toBe(200);
  });
});
