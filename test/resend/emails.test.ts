import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Resend } from "resend";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const DOMAIN = "shop.test";
const FROM = `Shop <hello@${DOMAIN}>`;
const TO = "delivered@simulator.mail.test";

let service: TestService;
let resend: Resend;
beforeAll(async () => {
  service = await startService();
  await verifiedDomain(service, DOMAIN);
  resend = new Resend(service.projectKey, { baseUrl: `${service.url}/resend` });
});
afterAll(() => service.stop());

/** Sends a message and returns its id. */
async function send(over: Record<string, unknown> = {}): Promise<string> {
  const { data, error } = await resend.emails.send({
    from: FROM,
    to: TO,
    subject: "Hello",
    text: "Hi",
    ...over,
  });
  expect(error).toBeNull();
  return data?.id ?? "";
}

describe("emails of the package resend", () => {
  test("a send is delivered, and its record has every field that was given", async () => {
    const id = await send({
      to: [TO, "Ana <delivered+ana@simulator.mail.test>"],
      cc: "delivered+cc@simulator.mail.test",
      replyTo: "Support <support@shop.test>",
      html: "<p>Hi</p>",
      tags: [{ name: "campaign", value: "spring" }],
      headers: { "X-Order": "42" },
    });
    await service.message(id, "delivered");
    const { data } = await resend.emails.get(id);
    expect(data).toMatchObject({
      object: "email",
      id,
      from: FROM,
      subject: "Hello",
      html: "<p>Hi</p>",
      text: "Hi",
      to: [TO, "Ana <delivered+ana@simulator.mail.test>"],
      cc: ["delivered+cc@simulator.mail.test"],
      bcc: [],
      reply_to: ["Support <support@shop.test>"],
      last_event: "delivered",
      tags: [{ name: "campaign", value: "spring" }],
      scheduled_at: null,
    });
    expect((await service.call("GET", `/v1/emails/${id}`)).body.headers).toEqual({ "X-Order": "42" });
  });

  test("attachments come back by links that need no key and end after an hour", async () => {
    const content = Buffer.from("two files");
    const id = await send({
      attachments: [
        { filename: "a.txt", content },
        { filename: "b.png", content: "iVBORw0KGgo=", contentId: "logo" },
      ],
    });
    const listed = await resend.emails.attachments.list({ emailId: id });
    expect(
      listed.data?.data.map(({ filename, content_disposition }) => [filename, content_disposition]),
    ).toEqual([
      ["a.txt", "attachment"],
      ["b.png", "inline"],
    ]);
    const first = listed.data?.data[0];
    const one = await resend.emails.attachments.get({ emailId: id, id: first?.id ?? "" });
    expect(one.data).toMatchObject({
      object: "attachment",
      size: content.length,
      content_type: "text/plain",
    });
    const url = (one.data?.download_url ?? "").replace(/^https?:\/\/[^/]+/, service.url);
    for (const end of ["=", "==", "%3D"]) expect((await fetch(`${url}${end}`)).status).toBe(404);
    expect(await (await fetch(url)).text()).toBe("two files");
    expect((await fetch(`${url.slice(0, -2)}AA`)).status).toBe(404);
  });

  test("a scheduled send takes ISO times and plain words, can be moved, and can be cancelled", async () => {
    const id = await send({ scheduledAt: "in 2 hours" });
    const planned = (await resend.emails.get(id)).data;
    expect(planned?.last_event).toBe("scheduled");
    const inHours = (Date.parse(planned?.scheduled_at ?? "") - Date.now()) / 3_600_000;
    expect(inHours).toBeGreaterThan(1.9);
    expect(inHours).toBeLessThan(2.1);
    const later = new Date(Date.now() + 86_400_000).toISOString();
    expect((await resend.emails.update({ id, scheduledAt: later })).data).toEqual({ object: "email", id });
    expect((await resend.emails.get(id)).data?.scheduled_at).toBe(later);
    expect((await resend.emails.cancel(id)).data).toEqual({ object: "email", id });
    expect((await resend.emails.get(id)).data?.last_event).toBe("canceled");
    expect((await resend.emails.cancel(id)).error).toMatchObject({
      statusCode: 409,
      name: "validation_error",
    });
    const { error } = await resend.emails.send({
      from: FROM,
      to: TO,
      subject: "x",
      text: "x",
      scheduledAt: "when pigs fly",
    });
    expect(error).toMatchObject({ statusCode: 422, name: "validation_error" });
    expect(error?.message).toStartWith('"scheduled_at"');
  });

  test.each([
    [{ attachments: [5] }, 'attachments[0]" must be an object.'],
    [{ template: "welcome" }, 'template" must be an object.'],
    [{ scheduled_at: "someday" }, 'or English words such as "in 1 hour"'],
    [{ scheduledAt: "in 1 hour" }, '"scheduledAt" is not a field. Use "scheduled_at".'],
    [{ send_at: "in 1 hour" }, '"send_at" is not a field. Use "scheduled_at".'],
    [{ templateId: "x" }, '"templateId" is not a field. Use "template.id".'],
    [{ variables: {} }, '"variables" is not a field. Use "template.variables".'],
    [{ replyTo: "a@b.test" }, '"replyTo" is not a field. Use "reply_to".'],
    [{ topic_id: "x" }, '"topic_id"'],
  ])("a send with %j is refused with words that help", async (wrong, words) => {
    const item = { from: FROM, to: TO, subject: "x", text: "x", ...wrong };
    const post = (path: string, body: unknown) => service.call("POST", `/resend${path}`, body);
    const refused = await post("/emails", item);
    expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining(words)]);
    const batch = await post("/emails/batch", [item]);
    expect([batch.status, batch.body.message]).toEqual([422, expect.stringContaining(words)]);
    expect(batch.body.message).toMatch(
      /^(?:(?:Message|Item) 0 is refused, so none was accepted\. |"\[0\]\.)/,
    );
    expect((await post("/emails/batch", [])).body.message).toBe(
      "The body must be a list of 1 to 100 messages.",
    );
  });

  test("an idempotency key sends once, and another body under it is a conflict", async () => {
    const mail = { from: FROM, to: TO, subject: "Once", text: "Hi" };
    const options = { idempotencyKey: "order-1" };
    const first = await resend.emails.send(mail, options);
    expect(await resend.emails.send(mail, options)).toMatchObject({ data: first.data, error: null });
    const other = await resend.emails.send({ ...mail, text: "Ho" }, options);
    expect(other.error).toMatchObject({ statusCode: 409, name: "invalid_idempotent_request" });
  });

  test("emails of the package resend lists go back by after and forward by before", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.unshift(await send({ subject: `n${count}` }));
    const page = (await resend.emails.list({ limit: 2 })).data;
    expect(page?.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(page).toMatchObject({ object: "list", has_more: true, data: [{ from: FROM, cc: [] }, {}] });
    const next = (await resend.emails.list({ limit: 2, after: ids[1] ?? "" })).data;
    expect(next?.data.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    const back = (await resend.emails.list({ limit: 2, before: ids[3] ?? "" })).data;
    expect(back?.data.map(({ id }) => id)).toEqual(ids.slice(1, 3));
    expect(back?.has_more).toBe(true);
  });
});

describe("a batch of the package resend", () => {
  const good = { from: FROM, to: TO, subject: "Good", text: "Hi" };
  const bad = { ...good, to: "nobody" };

  test("a batch of the package resend sends all messages", async () => {
    const { data } = await resend.batch.send([good, { ...good, subject: "Other" }]);
    expect(data?.data).toHaveLength(2);
    expect(data).not.toHaveProperty("errors");
  });

  test("a batch of the package resend is refused as a whole if one message is bad", async () => {
    const before = (await resend.emails.list({ limit: 1 })).data?.data[0]?.id;
    const { error } = await resend.batch.send([good, bad]);
    expect(error).toMatchObject({ statusCode: 422 });
    expect(error?.message).toContain("Item 1 is refused");
    expect((await resend.emails.list({ limit: 1 })).data?.data[0]?.id).toBe(before);
  });

  test("a batch of the package resend sends the good messages if it is permissive, and says what is wrong with the others", async () => {
    const { data } = await resend.batch.send([bad, good], { batchValidation: "permissive" });
    expect(data?.data).toHaveLength(1);
    expect(data?.errors).toEqual([{ index: 0, message: expect.stringContaining("address") }]);
  });
});

describe("errors are in Resend's form", () => {
  const rows: [string, () => Promise<{ error: unknown }>, Record<string, unknown>][] = [
    [
      "a wrong key",
      () => new Resend("pr_wrong", { baseUrl: `${service.url}/resend` }).emails.list(),
      { statusCode: 401, name: "validation_error" },
    ],
    ["an unknown message", () => resend.emails.get("msg_unknown"), { statusCode: 404, name: "not_found" }],
    ["a path that Postrider has not", () => resend.get("/nowhere"), { statusCode: 404, name: "not_found" }],
    [
      "a missing recipient",
      () => resend.emails.send({ from: FROM, subject: "x", text: "x" } as never),
      { statusCode: 422, name: "missing_required_field" },
    ],
    [
      "a file that the service would have to download",
      () =>
        resend.emails.send({
          from: FROM,
          to: TO,
          subject: "x",
          text: "x",
          attachments: [{ path: "http://127.0.0.1/" }],
        }),
      { statusCode: 422, name: "invalid_attachment" },
    ],
    [
      "a topic",
      () => resend.emails.send({ from: FROM, to: TO, subject: "x", text: "x", topicId: "t" }),
      { statusCode: 422, name: "validation_error" },
    ],
    [
      "a domain that is not verified",
      () => resend.emails.send({ from: "a@other.test", to: TO, subject: "x", text: "x" }),
      { statusCode: 403, name: "validation_error" },
    ],
  ];
  test.each(rows)("%s", async (_name, call, error) => {
    const answer = await call();
    expect(answer.error).toMatchObject({ ...error, message: expect.stringMatching(/.{10}/) });
  });

  test("no key at all", async () => {
    const response = await fetch(`${service.url}/resend/emails`);
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ statusCode: 401, name: "missing_api_key" });
  });

  test("a key that may only send cannot read", async () => {
    const made = await service.call("POST", "/v1/api-keys", {
      name: "send",
      scopes: ["emails:send"],
      senderId: (await service.call("GET", "/v1/me")).body.project.id,
    });
    const sender = new Resend(made.body.secret, { baseUrl: `${service.url}/resend` });
    expect((await sender.emails.send({ from: FROM, to: TO, subject: "x", text: "x" })).error).toBeNull();
    expect((await sender.emails.list()).error).toMatchObject({ statusCode: 401, name: "restricted_api_key" });
  });
});
