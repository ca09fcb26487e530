import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { MAX_STREAMS_PER_PROJECT } from "../../src/flows/live/streams.ts";
import { RESUME_MS } from "../../src/flows/live/watch.ts";
import { type EventReader, openEvents, type SentEvent } from "../support/event-stream.ts";
import { hurried } from "../support/hurried-clock.ts";
import { until } from "../support/poll.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

const FROM = "shop@live.example";
let service: TestService;
let clock: ShiftedClock;
let inboxId: string;

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({ PLAN_PRO: "unlimited", DEFAULT_PLAN: "pro" }, clock);
  await verifiedDomain(service, "live.example");
  [inboxId = ""] = await receivingInboxes(service, "in.live.example", ["help@in.live.example"]);
});
afterAll(() => service.stop());

const open = (query = "", headers: Record<string, string> = {}, key = service.projectKey) =>
  openEvents({ url: service.url, key, query, headers });

const send = (to: string) => {
  const tags = [{ name: "campaign", value: "spring" }];
  return service.send({ from: FROM, to, subject: "Hello", text: "Hi", tags });
};

test("a stream shows the events of a message as webhooks show them, in the order of their commits", async () => {
  const stream = await open();
  expect(stream.status).toBe(200);
  expect(stream.headers.get("content-type")).toBe("text/event-stream");
  expect(stream.headers.get("cache-control")).toBe("no-store, no-transform");
  const id = await send("ana@example.com");
  const events = await stream.until(({ event }) => event === "delivery");
  expect(events.map(({ event }) => event)).toEqual(["accepted", "queued", "sending", "delivery"]);
  const { body } = await service.call("GET", `/v1/emails/${id}`);
  expect(events.map((event) => event.id)).toEqual(body.events.map((event: { id: string }) => event.id));
  for (const { event, data } of events)
    expect(data).toMatchObject({
      type: event,
      messageId: id,
      senderId: body.senderId,
      email: "ana@example.com",
      tags: [{ name: "campaign", value: "spring" }],
    });
  expect(events.at(-1)?.data.delivery).toMatchObject({ smtpCode: 250 });
  stream.close();
});

test("a stream that asks for drafts tells of those that programs save, and goes on after one", async () => {
  const [plain, stream] = [await open(), await open("?drafts=true")];
  const { body: draft } = await service.call("POST", "/v1/drafts", { to: "ana@example.com", text: "Hi" });
  await service.call("PUT", `/v1/drafts/${draft.id}`, { to: "ana@example.com", text: "Hi Ana" });
  await service.call("PUT", `/v1/drafts/${draft.id}`, { version: 9 });
  const isDraft = ({ event }: SentEvent) => event === "draft_saved";
  const [first] = await stream.until(isDraft);
  const [second] = await stream.until(isDraft);
  expect(first?.data).toEqual({ type: "draft_saved", draftId: draft.id, occurredAt: expect.any(String) });
  const again = await open(`?drafts=true&lastEventId=${first?.id}`);
  expect((await again.until(isDraft)).map(({ id }) => id)).toEqual([second?.id ?? ""]);
  await send("ana@example.com");
  expect((await plain.until(({ event }) => event === "delivery")).some(isDraft)).toBe(false);
  for (const opened of [plain, stream, again]) opened.close();
});

test("a stream shows only the types and the message that it names", async () => {
  const typed = await open("?types=delivery,%20inbound_received");
  const [mine, other] = [await send("ana@example.com"), await send("bob@example.com")];
  await service.message(mine, "delivered");
  await service.message(other, "delivered");
  const received = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hello" });
  const events = await typed.until(({ event }) => event === "inbound_received");
  expect(events.map(({ event }) => event)).toEqual(["delivery", "delivery", "inbound_received"]);
  expect(events.at(-1)?.data).toMatchObject({
    messageId: received.body.messageId,
    testMode: true,
    inbound_received: { inboxId, text: "Hello\n" },
  });
  const [accepted] = (await service.call("GET", `/v1/emails/${mine}`)).body.events;
  const named = await open(`?messageId=${mine}&lastEventId=${accepted.id}`);
  const own = await named.until(({ event }) => event === "delivery");
  expect(own.map(({ data }) => data.messageId)).toEqual([mine, mine, mine]);
  named.close();
  typed.close();
});

test("a stream begins with the newest events, oldest first, and repeats none that commits while it opens", async () => {
  const first = await send("ana@example.com");
  await service.message(first, "delivered");
  const { body } = await service.call("GET", `/v1/emails/${first}`);
  const recent = await open("?recent=4");
  const second = await send("bob@example.com");
  const events = await recent.until(({ event, data }) => event === "delivery" && data.messageId === second);
  expect(events.slice(0, 4).map(({ id }) => id)).toEqual(body.events.map(({ id }: { id: string }) => id));
  expect(events.slice(4).map(({ data }) => data.messageId)).toEqual([second, second, second, second]);
  const unknown = await open("?recent=1&lastEventId=evt_unknown");
  expect((await unknown.next())?.id).toBe(events.at(-1)?.id ?? "");
  for (const stream of [recent, unknown]) stream.close();
  expect((await open("?recent=101")).status).toBe(422);
});

test("a stream begins with events of a project that nobody has followed, and with no other's", async () => {
  const account = { key: service.accountKey };
  const { body: project } = await service.call("POST", "/v1/senders", { name: "Quiet" }, account);
  const headers = { "x-service-product": project.id };
  const mail = {
    from: `me@onboarding.${SERVICE_DOMAIN}`,
    to: `delivered@simulator.${SERVICE_DOMAIN}`,
    subject: "Hi",
    text: "x",
  };
  const { body } = await service.call("POST", "/v1/emails", mail, { ...account, headers });
  const stream = await open("?recent=50", headers, service.accountKey);
  const [event] = await stream.until(() => true);
  expect(event?.event).toBe("accepted");
  expect(event?.data.messageId).toBe(body.id);
  stream.close();
});

test("an unknown type is refused with the names of all", async () => {
  const { status, refusal } = await open("?types=delivery,opened");
  expect(status).toBe(422);
  expect(JSON.parse(refusal).error.param).toBe("types");
  expect(refusal).toContain("inbound_received");
});

describe("a stream that is opened again", () => {
  const idsOf = (events: SentEvent[]) => events.map(({ id }) => id);

  test("a stream that is opened again goes on after the last event that it names in the header or the query, and repeats none", async () => {
    const first = await open();
    await send("ana@example.com");
    const seen = await first.until(({ event }) => event === "sending");
    first.close();
    await service.message(await send("bob@example.com"), "delivered");
    const last = seen.at(-1)?.id ?? "";
    const again = [await open("", { "last-event-id": last }), await open(`?lastEventId=${last}`)];
    const third = await send("eva@example.com");
    const isEnd = ({ event, data }: SentEvent) => event === "delivery" && data.messageId === third;
    const [one = [], two = []] = await Promise.all(again.map((stream) => stream.until(isEnd)));
    expect(idsOf(one)).toEqual(idsOf(two));
    // The last event of the first message, and four each of the others.
    expect(new Set(idsOf(one)).size).toBe(9);
    expect(idsOf(one).filter((id) => idsOf(seen).includes(id))).toEqual([]);
    for (const stream of again) stream.close();
  });

  test("a stream that is opened again is refused if the event is unknown, of another project, or older than an hour", async () => {
    const stream = await open();
    await send("ana@example.com");
    const [event] = await stream.until(() => true);
    stream.close();
    const refused = async (asked: EventReader) => {
      expect(asked.status).toBe(409);
      expect(JSON.parse(asked.refusal).error).toMatchObject({ code: "invalid_state", param: "lastEventId" });
    };
    await refused(await open("?lastEventId=evt_00000000000000000000000000"));
    const sender = await service.call("POST", "/v1/senders", { name: "Other" }, { key: service.accountKey });
    const other = { "x-service-product": sender.body.id };
    await refused(await open(`?lastEventId=${event?.id}`, other, service.accountKey));
    clock.shift(RESUME_MS + 1);
    await refused(await open(`?lastEventId=${event?.id}`));
  });
});

test("a stream of a browser has the dashboard's session and its project in the URL, and ends with the key", async () => {
  const own = { origin: service.url, "x-postrider-ui": "1" };
  const account = { key: service.accountKey };
  const made = await service.call("POST", "/v1/api-keys", { name: "browser" }, account);
  const signedIn = await service.call("POST", "/ui/session", { key: made.body.secret }, { headers: own });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const stream = await openEvents({
    url: service.url,
    key: null,
    query: "?project=default&types=accepted",
    headers: { cookie, "sec-fetch-site": "same-origin" },
  });
  expect(stream.status).toBe(200);
  const id = await send("ana@example.com");
  expect((await stream.next())?.data.messageId).toBe(id);
  await service.call("DELETE", `/v1/api-keys/${made.body.id}`, undefined, account);
  await stream.ended();
});

test("exactly as many streams of a project open as its limit allows, also if they are asked for at once", async () => {
  const { port } = new URL(service.url);
  const request = `GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.projectKey}\r\n\r\n`;
  const openRaw = () =>
    new Promise<Socket | null>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write(request));
      socket.on("data", (bytes) => {
        if (bytes.includes(": open")) resolve(socket);
        else if (bytes.includes("HTTP/1.1 429")) resolve(null);
      });
      socket.on("error", reject);
    });
  const asked = await Promise.all(Array.from({ length: MAX_STREAMS_PER_PROJECT + 25 }, openRaw));
  const streams = asked.filter((socket) => socket !== null);
  expect(streams.length).toBe(MAX_STREAMS_PER_PROJECT);
  const { status, refusal } = await open();
  expect(status).toBe(429);
  expect(JSON.parse(refusal).error.type).toBe("rate_limited");
  streams[0]?.destroy();
  await until(async () => {
    const stream = await open();
    stream.close();
    return stream.status === 200;
  });
  for (const socket of streams) socket.destroy();
});

describe("on a clock that runs fast", () => {
  const SPEED = 20;
  let fast: TestService;

  beforeAll(async () => {
    fast = await startService({}, hurried(SPEED));
    [inboxId = ""] = await receivingInboxes(fast, "in.live.example", ["help@in.live.example"]);
  });
  afterAll(() => fast.stop());

  const openFast = (key = fast.projectKey) => openEvents({ url: fast.url, key });
  const streamsOpen = async () =>
    /postrider_live_clients\{kind="stream"\} (\d+)/.exec(await fast.metrics())?.[1];

  test("a comment comes while there are no events", async () => {
    const stream = await openFast();
    const ended = stream.next();
    await until(() => stream.comments.length >= 2);
    stream.close();
    expect(await ended).toBeNull();
    expect(stream.comments).toEqual(["open", ""]);
  });

  test("a revoked key ends its streams, and no other ones", async () => {
    const { senderId } = (await fast.call("GET", "/v1/inboxes")).body.data[0];
    const account = { key: fast.accountKey };
    const made = await fast.call("POST", "/v1/api-keys", { name: "live", senderId }, account);
    const [revoked, kept] = [await openFast(made.body.secret), await openFast()];
    await fast.call("DELETE", `/v1/api-keys/${made.body.id}`, undefined, account);
    await revoked.ended();
    const { body } = await fast.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hello" });
    expect((await kept.next())?.data.messageId).toBe(body.messageId);
    kept.close();
  });

  test("a client that reads nothing is disconnected, and misses nothing for it when it comes back", async () => {
    const first = await openFast();
    await fast.call("POST", "/v1/inbound/simulate", { inboxId, text: "first" });
    const before = await first.next();
    first.close();
    await until(async () => (await streamsOpen()) === "0");
    const socket = connect(Number(new URL(fast.url).port), "127.0.0.1", () =>
      socket.write(
        `GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${fast.projectKey}\r\n\r\n`,
      ),
    );
    socket.on("error", () => undefined);
    socket.pause();
    await until(async () => (await streamsOpen()) === "1");
    // More than the buffers of the system hold.
    const text = "x".repeat(200_000);
    let count = 0;
    while ((await streamsOpen()) === "1") {
      expect((await fast.call("POST", "/v1/inbound/simulate", { inboxId, text })).status).toBe(202);
      count++;
    }
    socket.destroy();
    const again = await openEvents({
      url: fast.url,
      key: fast.projectKey,
      headers: { "last-event-id": before?.id ?? "" },
    });
    for (let seen = 0; seen < count; seen++)
      expect((await again.next())?.data.inbound_received.text.trim()).toBe(text);
    again.close();
  });

  test("a stop ends streams at once instead of waiting for them", async () => {
    const stream = await openFast();
    const never = 2 ** 30;
    await Promise.all([fast.app.stop(never), stream.ended()]);
    await fast.restart();
  });
});
