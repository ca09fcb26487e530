import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { deliver, delivered } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
});
afterAll(() => service.stop());

const bytesOf = (octets: number, seed: number): Buffer =>
  Buffer.from(
    Uint8Array.from({ length: octets }, (_, at) => (at * seed + (at >> 8) * 31 + (at >> 16)) & 255),
  );
const LARGE = bytesOf(1_000_000, 7);

async function download(path: string): Promise<Buffer> {
  const headers = { authorization: `Bearer ${service.projectKey}` };
  const response = await fetch(`${service.url}/v1/emails/${path}`, { headers });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

const refs = async (id: string): Promise<number[]> =>
  (
    await service.app.db.all<{ refs: number }>(
      `SELECT refs FROM contents WHERE key IN (SELECT raw FROM message_content WHERE message_id = ?1
        UNION ALL SELECT content FROM attachments WHERE message_id = ?1)`,
      [id],
    )
  ).map((row) => row.refs);

function sendWith(attachments: readonly Buffer[], more: Record<string, unknown> = {}) {
  return service.call("POST", "/v1/emails", {
    from: { email: "a@in.test" },
    to: [{ email: "delivered@simulator.mail.test" }],
    subject: "x",
    text: "See the attachment.",
    attachments: attachments.map((bytes, at) => ({
      filename: `${at}.bin`,
      content: bytes.toString("base64"),
    })),
    ...more,
  });
}

describe("a send with a large attachment", () => {
  test("a send with a large attachment is sent with it and returns its bytes, and a second send stores it once", async () => {
    const first = await sendWith([LARGE, Buffer.from("small")]);
    expect(first.status).toBe(202);
    const record = await service.message(first.body.id, "delivered");
    for (const [at, bytes] of [LARGE, Buffer.from("small")].entries())
      expect((await download(`${record.id}/attachments/${record.attachments[at].id}`)).equals(bytes)).toBe(
        true,
      );
    const raw = (await download(`${record.id}/raw`)).toString("latin1");
    expect(raw.replaceAll("\r\n", "")).toContain(LARGE.toString("base64"));
    await service.message((await sendWith([LARGE])).body.id, "delivered");
    const kept = "SELECT refs FROM contents WHERE size = ?";
    expect(await service.app.db.all<unknown>(kept, [LARGE.length])).toEqual([{ refs: 2 }]);
  });

  test("a send with large bodies shows and sends them completely", async () => {
    const text = "Grüße. ".repeat(200_000);
    const { body } = await sendWith([], { text, html: `<p>${text}</p>` });
    const record = await service.message(body.id, "delivered");
    expect([record.text, record.html]).toEqual([text, `<p>${text}</p>`]);
    expect((await download(`${body.id}/raw`)).length).toBeGreaterThan(2 * text.length);
  });

  test("a send with a large attachment is refused before anything of it is written if its project has no volume left", async () => {
    const senders = await service.call("GET", "/v1/senders", undefined, { key: service.accountKey });
    const { id, dailyQuota } = senders.body.data[0];
    const quota = (value: number | null) =>
      service.call("PATCH", `/v1/senders/${id}`, { dailyQuota: value }, { key: service.accountKey });
    expect((await quota(0)).status).toBe(200);
    const bytes = bytesOf(950_000, 19);
    const text = "Some text. ".repeat(40_000);
    const refused = [await sendWith([bytes]), await sendWith([], { text })];
    await quota(dailyQuota);
    for (const { status, body } of refused)
      expect([status, body.error.code]).toEqual([403, "daily_quota_exceeded"]);
    const written = "SELECT count(*) AS n FROM contents WHERE size = ? OR size BETWEEN ? AND ? + 100";
    const args = [bytes.length, text.length, text.length];
    expect(await service.app.db.first<unknown>(written, args)).toEqual({ n: 0 });
  });

  test("a send with a large attachment is refused without leaving anything permanent if its project may not send", async () => {
    const bytes = bytesOf(900_000, 11);
    const refused = await sendWith([bytes], { from: { email: "a@nowhere.test" } });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    const named = "SELECT count(*) AS n FROM contents WHERE size = ? AND refs > 0";
    expect(await service.app.db.first<unknown>(named, [bytes.length])).toEqual({ n: 0 });
  });
});

describe("a small body", () => {
  /** Number of messages that refer to each message's body content. */
  const sharers = async (ids: readonly string[]) =>
    (
      await service.app.db.all<{ refs: number }>(
        `SELECT b.refs FROM message_content c JOIN contents b ON b.key = c.body
          WHERE c.message_id IN (SELECT value FROM json_each(?)) ORDER BY c.message_id`,
        [JSON.stringify(ids)],
      )
    ).map(({ refs }) => refs);
  const news = (words: string) => ({ text: `${words} news. `.repeat(60), html: `<p>${words}</p>` });

  test("a small body that repeats is stored once, in batches too, and each of its messages shows and sends it", async () => {
    const one = await sendWith([], news("Old"));
    const to = [{ email: "delivered@simulator.mail.test" }];
    const emails = Array.from({ length: 3 }, () => ({
      from: { email: "a@in.test" },
      to,
      subject: "x",
      ...news("Old"),
    }));
    const batch = await service.call("POST", "/v1/emails/batch", { emails });
    const ids = [one.body.id, ...batch.body.data.map(({ id }: { id: string }) => id)];
    expect(await sharers(ids)).toEqual([4, 4, 4, 4]);
    for (const id of ids) expect(await service.message(id, "delivered")).toMatchObject(news("Old"));
    const raw = (await download(`${ids[3]}/raw`)).toString();
    expect(raw).toContain("Old news. Old news.");
  });

  test("a small body that differs by a character is stored separately, and a body of one word is shared too", async () => {
    const ids: string[] = [];
    for (const more of [news("Ale"), news("Alf"), { text: "short" }, { text: "short" }])
      ids.push((await sendWith([], more)).body.id);
    expect(await sharers(ids)).toEqual([1, 1, 2, 2]);
  });

  test("a small body of a message to two inboxes of a project is stored once", async () => {
    const to = ["a@in.test", "b@in.test"];
    const id = await delivered(service, {
      to,
      headers: ["Message-ID: <both@client.test>"],
      body: "For both.",
    });
    expect(await sharers([id])).toEqual([2]);
  });

  test("a small body that a template renders again is stored once, too", async () => {
    const made = await service.call("POST", "/v1/templates", {
      name: "news",
      subject: "News",
      html: `<p>{{ day }} ${"news. ".repeat(200)}</p>`,
    });
    const ids: string[] = [];
    for (const day of ["Monday", "Monday", "Monday", "Tuesday"]) {
      const { body } = await service.call("POST", "/v1/emails", {
        from: { email: "a@in.test" },
        to: [{ email: "delivered@simulator.mail.test" }],
        templateId: made.body.id,
        data: { day },
      });
      ids.push(body.id);
      await service.message(body.id, "delivered");
    }
    expect(await sharers(ids)).toEqual([3, 3, 3, 1]);
  });
});

/** A letter with the bytes attached, in base64. */
function letter(to: string | readonly string[], bytes: Buffer, id: string) {
  return {
    to,
    headers: [
      `Message-ID: <${id}@client.test>`,
      "Subject: Large",
      "Content-Type: multipart/mixed; boundary=b",
    ],
    body: [
      "--b",
      "Content-Type: text/plain",
      "",
      "See the attachment.",
      "--b",
      "Content-Type: application/octet-stream",
      "Content-Disposition: attachment; filename=x.bin",
      "Content-Transfer-Encoding: base64",
      "",
      ...(bytes.toString("base64").match(/.{1,76}/g) ?? []),
      "--b--",
    ].join("\r\n"),
  };
}

describe("a large incoming message", () => {
  test("a large incoming message is read and returned as it came, below our own fields", async () => {
    const sent = letter("a@in.test", LARGE, "one");
    const id = await delivered(service, sent);
    const record = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(record).toMatchObject({
      subject: "Large",
      attachments: [{ filename: "x.bin", size: LARGE.length }],
    });
    expect(record.text.trim()).toBe("See the attachment.");
    expect(Object.keys(record.headers).slice(0, 3)).toEqual([
      "Return-Path",
      "Authentication-Results",
      "Received",
    ]);
    const raw = await download(`${id}/raw`);
    expect(raw.length).toBe(record.size);
    expect(raw.toString()).toStartWith("Return-Path: <ada@client.test>\r\nAuthentication-Results: ");
    expect(raw.toString()).toEndWith(`${sent.headers.join("\r\n")}\r\n\r\n${sent.body}\r\n`);
    const [{ id: part }] = record.attachments;
    expect((await download(`${id}/attachments/${part}`)).equals(LARGE)).toBe(true);
  });

  test("a large incoming message is accepted once if it is delivered again, and stored once for two inboxes and a second message of the same bytes", async () => {
    const both = letter(["a@in.test", "b@in.test"], bytesOf(700_000, 13), "two");
    const id = await delivered(service, both);
    expect(await delivered(service, both)).toBe(id);
    expect(await refs(id)).toEqual([2]);
    const unnamed = { ...both, headers: both.headers.slice(1) };
    const [first, second] = [await delivered(service, unnamed), await delivered(service, unnamed)];
    expect(first).not.toBe(second);
    expect(await refs(second)).toEqual([4]);
  });

  test("a large incoming message that arrives twice at the same time is stored completely", async () => {
    const { headers, ...same } = letter("b@in.test", bytesOf(1_500_000, 17), "three");
    const unnamed = { ...same, headers: headers.slice(1) };
    const replies = await Promise.all([deliver(service, unnamed), deliver(service, unnamed)]);
    const ids = replies.map((reply) => /^250 .*(msg_[0-9a-z]{26})/.exec(reply)?.[1] ?? "");
    expect(await refs(ids[0] ?? "")).toEqual([2]);
    const [one, two] = await Promise.all(ids.map((id) => download(`${id}/raw`)));
    const below = (raw: Buffer | undefined): string => raw?.toString().split("From: Ada")[1] ?? "";
    expect(below(one).length).toBeGreaterThan(1_500_000);
    expect(below(one)).toBe(below(two));
  });

  test("a large incoming message with a large text reads as it came", async () => {
    const text = "A line of a long letter.\r\n".repeat(40_000);
    const id = await delivered(service, { to: "a@in.test", headers: ["Subject: Long"], body: text });
    const record = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(record.text.trim()).toBe(text.replaceAll("\r\n", "\n").trim());
    expect(record.replyText.length).toBe(record.text.trim().length);
  });
});
