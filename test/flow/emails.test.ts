import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MAX_LOOKED_AT } from "../../src/store/lists/message-page.ts";
import { insertListed, message } from "../support/lists.ts";
import {
  receivingInboxes,
  SERVICE_DOMAIN,
  startService,
  type TestService,
  verifiedDomain,
} from "../support/service.ts";

let service: TestService;

beforeEach(async () => {
  service = await startService({ DELIVERY_RETRY_SECONDS: "0.02" });
  await verifiedDomain(service, "sender.test");
});
afterEach(() => service.stop());

const mail = (to: string, more: Record<string, unknown> = {}) => ({
  from: { email: "news@sender.test" },
  to: [{ email: to }],
  subject: "Hi",
  text: "x",
  ...more,
});
const later = (ms: number) => new Date(Date.now() + ms).toISOString();
const HOUR = 3_600_000;

const send = (body: ReturnType<typeof mail>) => service.send(body);

describe("a simulated recipient", () => {
  test.each([
    ["delivered", "delivered", ["accepted", "queued", "sending", "delivery"]],
    ["bounced+tuesday", "bounced", ["accepted", "queued", "sending", "bounce"]],
    ["soft-bounced", "bounced", ["accepted", "queued", "sending", "bounce"]],
    ["complained", "complained", ["accepted", "queued", "sending", "delivery", "complaint"]],
    ["rejected", "rejected", ["accepted", "queued", "sending", "rejected"]],
    ["delayed", "delivered", ["accepted", "queued", "sending", "delivery_delayed", "sending", "delivery"]],
    ["nonsense", "bounced", ["accepted", "queued", "sending", "bounce"]],
    ["constructor", "bounced", ["accepted", "queued", "sending", "bounce"]],
    ["__proto__", "bounced", ["accepted", "queued", "sending", "bounce"]],
  ])("%s ends as %s, suppresses no address and counts in no rate", async (name, status, types) => {
    const id = await send(mail(`${name}@simulator.${SERVICE_DOMAIN}`));
    const record = await service.message(id, status);
    expect(record.events.map((event: { type: string }) => event.type)).toEqual(types);
    expect(await service.app.db.all("SELECT id FROM suppressions")).toEqual([]);
    expect(await service.app.db.all("SELECT day FROM reputation")).toEqual([]);
  });

  test("a simulated recipient that complains gets the message from a peer that accepted it", async () => {
    const id = await send(mail(`complained@simulator.${SERVICE_DOMAIN}`));
    const { events, sentAt } = await service.message(id, "complained");
    // The record's write and its events take separate times.
    expect(sentAt >= events.at(-3).createdAt && sentAt <= events.at(-1).createdAt).toBe(true);
    expect(events.slice(-2).map(({ data }: { data: object }) => data)).toEqual([
      { delivery: { mx: "simulator", tls: null, smtpCode: 250, response: "250 2.0.0 simulated delivery" } },
      { complaint: { feedbackType: "abuse" } },
    ]);
  });

  test("a simulated recipient can receive mail from the onboarding domain", async () => {
    const id = await send(
      mail(`delivered@simulator.${SERVICE_DOMAIN}`, { from: { email: `a@onboarding.${SERVICE_DOMAIN}` } }),
    );
    expect((await service.message(id, "delivered")).status).toBe("delivered");
  });

  test("a simulated recipient that is suppressed is rejected like any other", async () => {
    await service.app.db.write([
      {
        sql: "INSERT INTO suppressions (id, sender_id, email, reason, created_at) SELECT 'sup_1', id, ?, 'manual', 1 FROM senders",
        args: [`delivered@simulator.${SERVICE_DOMAIN}`],
      },
    ]);
    const id = await send(mail(`delivered@simulator.${SERVICE_DOMAIN}`));
    expect((await service.message(id, "rejected")).recipients[0].reason).toBe("suppressed");
  });
});

describe("a scheduled message", () => {
  test("a scheduled message can be canceled only while it waits", async () => {
    const id = await send(mail("a@one.test", { scheduledAt: later(HOUR) }));
    const canceled = await service.call("POST", `/v1/emails/${id}/cancel`);
    expect({ status: canceled.status, body: canceled.body }).toEqual({
      status: 200,
      body: { id, status: "failed" },
    });
    const record = await service.message(id, "failed");
    expect(record.recipients[0]).toMatchObject({ status: "failed", reason: "canceled" });
    expect(record.events.at(-1)).toMatchObject({ type: "failed", data: { failed: { reason: "canceled" } } });
    const again = await service.call("POST", `/v1/emails/${id}/cancel`);
    expect(again.body.error).toMatchObject({ type: "conflict", code: "invalid_state" });
  });

  test("a scheduled message that is canceled twice at once is canceled once", async () => {
    const id = await send(mail("a@one.test", { scheduledAt: later(HOUR) }));
    const answers = await Promise.all([0, 1, 2].map(() => service.call("POST", `/v1/emails/${id}/cancel`)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409, 409]);
    expect(
      (await service.message(id, "failed")).events.filter(
        (event: { type: string }) => event.type === "failed",
      ).length,
    ).toBe(1);
  });

  test("a scheduled message can be moved, also to now", async () => {
    const id = await send(mail("a@one.test", { scheduledAt: later(HOUR) }));
    const to = later(2 * HOUR);
    const moved = await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: to });
    expect(moved.body).toEqual({ id, status: "accepted", scheduledAt: to });
    expect((await service.call("GET", `/v1/emails/${id}`)).body.scheduledAt).toBe(to);
    await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: "1969-01-01T00:00:00Z" });
    expect((await service.message(id, "delivered")).status).toBe("delivered");
    const late = await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: to });
    expect(late.status).toBe(409);
  });

  test.each([
    ["31 days ahead", later(31 * 24 * HOUR), "schedule_out_of_range"],
    ["to no time", "soon", undefined],
  ])("a scheduled message cannot be moved %s", async (_, scheduledAt, code) => {
    const id = await send(mail("a@one.test", { scheduledAt: later(HOUR) }));
    const refused = await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt });
    expect(refused.status).toBe(422);
    expect(refused.body.error).toMatchObject({ param: "scheduledAt" });
    expect(refused.body.error.code).toBe(code);
  });
});

test("a name that is not valid Unicode is shown as it is sent", async () => {
  const to = [{ email: "a@one.test", name: "a\ud800b" }];
  const id = await send(mail("", { to, scheduledAt: later(HOUR) }));
  const { addresses } = (await service.call("GET", `/v1/emails/${id}`)).body;
  expect(addresses.to).toEqual([{ email: "a@one.test", name: "a\ufffdb" }]);
});

test("invalid Unicode in headers and data is replaced", async () => {
  const rest = { headers: { "X-Half": "a\ud83d" }, data: { half: ["\udc00"] }, scheduledAt: later(HOUR) };
  const id = await send(mail("a@one.test", rest));
  const { headers, data } = (await service.call("GET", `/v1/emails/${id}`)).body;
  expect([headers["X-Half"], data]).toEqual(["a\ufffd", { half: ["\ufffd"] }]);
});

test("an address suppressed while its message waited gets no mail", async () => {
  const id = await send(mail("late@one.test", { scheduledAt: later(600) }));
  expect((await service.call("POST", "/v1/suppressions", { email: "Late@one.test" })).status).toBe(201);
  const record = await service.message(id, "rejected");
  expect(record.recipients[0]).toMatchObject({ reason: "suppressed", mx: null });
});

test("mail of a domain that was deleted while it waited is not sent", async () => {
  const id = await send(mail("a@one.test", { scheduledAt: later(600) }));
  const [domain] = (await service.call("GET", "/v1/domains")).body.data;
  expect((await service.call("DELETE", `/v1/domains/${domain.id}`)).status).toBe(204);
  const record = await service.message(id, "rejected");
  expect(record.recipients[0]).toMatchObject({ reason: "domain_not_verified", mx: null });
  expect(record.events.at(-1)).toMatchObject({
    type: "rejected",
    data: { rejected: { reason: "domain_not_verified" } },
  });
});

describe("bytes", () => {
  test("an outbound message's raw bytes are those captured, signed", async () => {
    const id = await send(mail("a@one.test"));
    await service.message(id, "delivered");
    const raw = await service.call("GET", `/v1/emails/${id}/raw`);
    expect(raw.headers.get("content-type")).toBe("message/rfc822");
    expect(raw.headers.get("x-content-type-options")).toBe("nosniff");
    expect(raw.body).toStartWith("DKIM-Signature:");
    expect(raw.body).toContain(`Message-ID: <${id}@sender.test>`);
  });

  test("an attachment is returned byte by byte, always as a download", async () => {
    const content = Buffer.from([0, 1, 2, 255, 10, 13]);
    const id = await send(
      mail("a@one.test", {
        attachments: [
          { filename: '../a"b;\u00fc.html', content: content.toString("base64"), contentType: "text/html" },
        ],
      }),
    );
    const record = await service.message(id, "delivered");
    const response = await fetch(`${service.url}/v1/emails/${id}/attachments/${record.attachments[0].id}`, {
      headers: { authorization: `Bearer ${service.projectKey}` },
    });
    expect(Buffer.from(await response.arrayBuffer())).toEqual(content);
    expect(response.headers.get("content-disposition")).toBe(
      `attachment; filename=".._a_b;_.html"; filename*=UTF-8''.._a%22b%3B%C3%BC.html`,
    );
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("a PDF file is shown to a frame of ours if asked for, and another file is a download nevertheless", async () => {
    const file = (contentType: string) => ({ filename: "bill.pdf", content: "YQ==", contentType });
    const types = ["application/pdf", "text/html", "application/pdf; x=1"];
    const id = await send(mail("a@one.test", { attachments: types.map(file) }));
    const { attachments } = await service.message(id, "delivered");
    const shown = async (at: number, query: string) => {
      const path = `/v1/emails/${id}/attachments/${attachments[at].id}${query}`;
      const { headers } = await service.call("GET", path);
      const names = [
        "content-type",
        "content-disposition",
        "content-security-policy",
        "x-content-type-options",
      ];
      return names.map((name) => headers.get(name)?.split(";")[0]);
    };
    const inline = ["application/pdf", "inline", "default-src 'none'", "nosniff"];
    expect(await shown(0, "?inline=1")).toEqual(inline);
    for (const [at, query] of [
      [0, ""],
      [0, "?inline=0"],
      [1, "?inline=1"],
      [2, "?inline=1"],
    ] as const)
      expect((await shown(at, query)).slice(1, 3)).toEqual(["attachment", undefined]);
  });

  test("an inbound message's raw bytes and attachments are the ones received, below our trace fields", async () => {
    await receivingInboxes(service, "in.test", ["box@in.test"]);
    const child = Bun.spawn(
      [
        "swaks",
        "--server",
        `127.0.0.1:${service.smtpPort}`,
        "--to",
        "box@in.test",
        "--attach-name",
        "x.bin",
        "--attach-type",
        "application/octet-stream",
        "--attach",
        "@/etc/hostname",
      ],
      { stdout: "ignore" },
    );
    expect(await child.exited).toBe(0);
    const list = await service.call("GET", "/v1/emails?direction=inbound");
    const record = (await service.call("GET", `/v1/emails/${list.body.data[0].id}`)).body;
    const raw = await service.call("GET", `/v1/emails/${record.id}/raw`);
    expect(raw.body).toMatch(
      /^Return-Path: <[^>]*>\r\nAuthentication-Results: [^\r]*(?:\r\n [^\r]*)*\r\nReceived: from /,
    );
    const bytes = await service.call(
      "GET",
      `/v1/emails/${record.id}/attachments/${record.attachments[0].id}`,
    );
    expect(bytes.body).toBe(await Bun.file("/etc/hostname").text());
  });

  test.each(["/raw", "/attachments/att_00000000000000000000000000", "/attachments/..%2f..%2fetc"])(
    "%s of a message that does not exist is 404",
    async (path) => {
      const answer = await service.call("GET", `/v1/emails/msg_00000000000000000000000000${path}`);
      expect(answer.body.error.type).toBe("not_found");
    },
  );
});

describe("the list", () => {
  test("the list is narrowed by each filter, and by several together", async () => {
    const one = await send(
      mail("ada@one.test", { subject: "Spring 100%", tags: [{ name: "kind", value: "news" }] }),
    );
    const two = await send(mail("bob@two.test", { subject: "Autumn", cc: [{ email: "Carol@three.test" }] }));
    await Promise.all([service.message(one, "delivered"), service.message(two, "delivered")]);
    const ids = async (query: string) =>
      (await service.call("GET", `/v1/emails?${query}`)).body.data.map(
        (summary: { id: string }) => summary.id,
      );
    const since = encodeURIComponent(new Date(0).toISOString());
    const cases: [string, string[]][] = [
      ["", [two, one]],
      ["status=delivered", [two, one]],
      ["status=bounced", []],
      ["direction=inbound", []],
      ["q=SPRING", [one]],
      ["q=100%25", [one]],
      ["q=_", []],
      ["q=carol", [two]],
      ["q=news%40sender", [two, one]],
      ["to=CAROL@three.test", [two]],
      ["to=ca+rol@three.test", []],
      ["from=news@sender.test", [two, one]],
      ["tag=kind:news", [one]],
      ["tag=kind:new", []],
      [`after=${since}`, [two, one]],
      [`before=${since}`, []],
      ["after=1970-01-01", [two, one]],
      ["before=1970-01-01", []],
      ["status=delivered&direction=outbound&q=autumn&to=bob@two.test", [two]],
    ];
    for (const [query, expected] of cases)
      expect({ query, ids: await ids(query) }).toEqual({ query, ids: expected });
  });

  test.each([
    "status=happy",
    "direction=up",
    "to=carol",
    "from=news",
    "limit=0",
    "limit=101",
    "limit=x",
    "tag=kind",
    "after=yesterday",
    "after=2026-02-30",
    "before=2026-02-30T00:00:00Z",
    "q=",
  ])("%s is 422", async (query) => {
    const answer = await service.call("GET", `/v1/emails?${query}`);
    expect(answer.status).toBe(422);
    expect(answer.body.error.param).toBe(query.split("=")[0]);
  });

  test("the list has no gaps or duplicates in its pages while messages arrive", async () => {
    const first = [];
    for (let at = 0; at < 7; at++) first.push(await send(mail(`r${at}@one.test`)));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "limit=3" : `limit=3&cursor=${cursor}`;
      const { body } = await service.call("GET", `/v1/emails?${query}`);
      seen.push(...body.data.map((summary: { id: string }) => summary.id));
      cursor = body.nextCursor;
      await send(mail("meanwhile@one.test"));
    } while (cursor !== null);
    expect(seen).toEqual(first.reverse());
  });

  test("the list finds a text of two characters below thousands of messages, with pages that may be empty", async () => {
    const oldest = await send(mail("old@one.test", { subject: "a qz" }));
    const { senderId } = (await service.call("GET", `/v1/emails/${oldest}`)).body;
    const others = Array.from({ length: MAX_LOOKED_AT + 1 }, () =>
      message(senderId, { createdAt: Date.now() + 1000 }),
    );
    await service.app.db.write(others.map(insertListed));
    const empty = (await service.call("GET", "/v1/emails?q=qz")).body;
    expect(empty).toEqual({ data: [], nextCursor: expect.any(String) });
    const { body } = await service.call("GET", `/v1/emails?q=qz&cursor=${empty.nextCursor}`);
    expect(body).toEqual({ data: [expect.objectContaining({ id: oldest })], nextCursor: null });
  });

  test("the list refuses a cursor of another query", async () => {
    for (let at = 0; at < 3; at++) await send(mail(`r${at}@one.test`));
    const { body } = await service.call("GET", "/v1/emails?limit=2");
    const other = await service.call(
      "GET",
      `/v1/emails?limit=2&direction=outbound&cursor=${body.nextCursor}`,
    );
    expect(other.body.error).toMatchObject({ type: "invalid_request", param: "cursor" });
  });
});
