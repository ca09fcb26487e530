import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { systemClock } from "../../src/clock.ts";
import { Tail } from "../../src/flows/live/tail.ts";
import { MAX_WAITS_PER_PROJECT, Waits } from "../../src/flows/live/waits.ts";
import { testDatabase } from "../support/database.ts";
import { hurried } from "../support/hurried-clock.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
let inboxId: string;

beforeAll(async () => {
  service = await startService({ PLAN_PRO: "unlimited" });
  await verifiedDomain(service, "wait.example");
  [inboxId = ""] = await receivingInboxes(service, "in.wait.example", ["help@in.wait.example"]);
});
afterAll(() => service.stop());

const send = (to: string, subject = "Hello") =>
  service.send({ from: "shop@wait.example", to, subject, text: "Hi" });
const wait = (query: string, seconds = 60) =>
  service.call("GET", `/v1/emails?${query}&wait=${seconds}`).then(({ body }) => body);
const waitsOf = async (one: TestService) =>
  Number(/postrider_live_clients\{kind="wait"\} (\d+)/.exec(await one.metrics())?.[1]);
const waiting = (count: number, one = service) => until(async () => (await waitsOf(one)) === count);
const now = () => encodeURIComponent(new Date(systemClock.now() + 1).toISOString());

describe("a list that waits", () => {
  test("answers at once if it has a message", async () => {
    const id = await send("once@example.com");
    const { data, nextCursor } = await wait("to=once@example.com");
    expect(data.map((message: { id: string }) => message.id)).toEqual([id]);
    expect(nextCursor).toBeNull();
  });

  test("answers as soon as a message is sent that fits its filters, as the list shows it", async () => {
    const [fits, other] = [wait("to=ANA@example.com&q=cod"), wait("to=ana@example.com&q=bill")];
    await waiting(2);
    await send("bob@example.com", "Your code");
    await send("ana@example.com", "Nothing");
    const code = await send("ana@example.com", "Your code");
    const page = await fits;
    expect(page.data).toEqual([
      {
        ...(await service.call("GET", "/v1/emails?to=ana@example.com&q=cod")).body.data[0],
        status: page.data[0].status,
      },
    ]);
    expect(page.data[0].id).toBe(code);
    await waiting(1);
    const bill = await send("ana@example.com", "Your bill");
    expect((await other).data[0].id).toBe(bill);
  });

  test("answers when a message arrives, and when one comes to the status", async () => {
    const after = now();
    const [received, delivered] = [
      wait(`direction=inbound&after=${after}`),
      wait("to=status@example.com&status=delivered"),
    ];
    await waiting(2);
    const arrived = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hello" });
    expect((await received).data[0].id).toBe(arrived.body.messageId);
    const id = await send("status@example.com");
    expect((await delivered).data[0]).toMatchObject({ id, status: "delivered" });
  });

  test("a list that waits leaves older messages out if it has a time", async () => {
    await send("old@example.com");
    const late = wait(
      `to=old@example.com&after=${encodeURIComponent(new Date(systemClock.now() + 60_000).toISOString())}`,
      1,
    );
    expect((await late).data).toEqual([]);
  });

  test("a list that waits does not wait for a page after the first", async () => {
    for (const subject of ["one", "two"]) await send("pages@example.com", subject);
    const first = await wait("to=pages@example.com&limit=1");
    const second = await wait(`to=pages@example.com&limit=1&cursor=${first.nextCursor}`);
    expect(second.data).toHaveLength(1);
    expect(second.nextCursor).toBeNull();
  });

  test.each(["0", "61", "1.5", "x"])("of %s seconds is refused", async (seconds) => {
    const { status, body } = await service.call("GET", `/v1/emails?wait=${seconds}`);
    expect([status, body.error.param]).toEqual([422, "wait"]);
  });

  test.each(["to", "from"])("for a text that is no address in %s is refused", async (name) => {
    const { status, body } = await service.call("GET", `/v1/emails?${name}=ana&wait=1`);
    expect([status, body.error.param]).toEqual([422, name]);
  });

  test("a list that waits is forgotten when its client goes", async () => {
    const stop = new AbortController();
    const asked = fetch(`${service.url}/v1/emails?to=gone@example.com&wait=60`, {
      headers: { authorization: `Bearer ${service.projectKey}` },
      signal: stop.signal,
    }).catch(() => null);
    await waiting(1);
    stop.abort();
    await asked;
    await waiting(0);
  });

  test("a list that waits is answered with 401 if its key was revoked in the meantime", async () => {
    const account = { key: service.accountKey };
    const { senderId } = (await service.call("GET", "/v1/inboxes")).body.data[0];
    const made = await service.call("POST", "/v1/api-keys", { name: "wait", senderId }, account);
    const asked = service.call("GET", "/v1/emails?to=revoked@example.com&wait=60", undefined, {
      key: made.body.secret,
    });
    await waiting(1);
    await service.call("DELETE", `/v1/api-keys/${made.body.id}`, undefined, account);
    await send("revoked@example.com");
    expect((await asked).status).toBe(401);
  });

  test("a list that waits is refused with 429 if a thousand of the project wait already", async () => {
    const { port } = new URL(service.url);
    const request = `GET /v1/emails?to=many@example.com&wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.projectKey}\r\n\r\n`;
    const sockets: Socket[] = [];
    const answered: Promise<string>[] = [];
    for (let count = 0; count < MAX_WAITS_PER_PROJECT; count++) {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write(request));
      sockets.push(socket);
      answered.push(new Promise((resolve) => socket.once("data", (bytes) => resolve(String(bytes)))));
    }
    await waiting(MAX_WAITS_PER_PROJECT);
    const { status, body } = await service.call("GET", "/v1/emails?to=more@example.com&wait=1");
    expect([status, body.error.type]).toEqual([429, "rate_limited"]);
    const id = await send("many@example.com");
    // One message answers all of them.
    for (const answer of await Promise.all(answered)) expect(answer).toContain(id);
    await waiting(0);
    for (const socket of sockets) socket.destroy();
  });
});

test("a wait ends with an empty page when its time is over, and when the service stops", async () => {
  const fast = await startService({}, hurried(20));
  const empty = { data: [], nextCursor: null };
  expect((await fast.call("GET", "/v1/emails?wait=20")).body).toEqual(empty);
  const asked = fast.call("GET", "/v1/emails?wait=60");
  await waiting(1, fast);
  const never = 2 ** 30;
  await fast.app.stop(never);
  expect((await asked).body).toEqual(empty);
  await fast.stop();
});

test("a wait costs the database nothing but the first of its project", async () => {
  const { db, remove } = await testDatabase();
  let queries = 0;
  const counting = new Proxy(db, {
    get(target, name) {
      if (name === "all" || name === "first") queries++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  // Timers that never fire, so that the tail does not look in between.
  const clock = { ...systemClock, after: () => () => undefined };
  const tail = new Tail({ db: counting, clock }, false);
  const waits = new Waits({ db: counting, clock, tail });
  const { signal } = new AbortController();
  const begin = () => waits.begin({ senderId: "snd_1", filter: {}, ms: 1000, signal });
  await begin();
  const atFirst = queries;
  for (let count = 1; count < MAX_WAITS_PER_PROJECT; count++) await begin();
  expect(queries).toBe(atFirst);
  expect(waits.size).toBe(MAX_WAITS_PER_PROJECT);
  tail.close();
  await remove();
});
