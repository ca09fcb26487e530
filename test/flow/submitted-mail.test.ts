import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { parseMail } from "../../src/mail/reading/parse.ts";
import { type MxMessage, startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { FROM, idIn, submit, TO, type ToSubmit } from "../support/submit.ts";

let service: TestService;
let smarthost: TestMx;

beforeAll(async () => {
  smarthost = startMx({ extensions: ["8BITMIME", "SMTPUTF8", "PIPELINING"] });
  service = await startService({
    SUBMISSION_PORT: "0",
    SUBMISSION_HOST: "127.0.0.1",
    SUBMISSION_INSECURE_LOOPBACK: "1",
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${smarthost.port}`,
  });
  await verifiedDomain(service, "from.test");
});
afterAll(async () => {
  await service.stop();
  smarthost.stop();
});

/** Submits a message and waits until it has left. Returns what the smarthost got, and the record. */
async function sent(what: ToSubmit) {
  const before = smarthost.messages.items.length;
  const id = idIn(await submit(service, what));
  const left = await smarthost.messages.reached(before + 1);
  const record = await service.message(id, "sent");
  return { id, left, record };
}

/** The results of all signatures of a message, checked with the published key. */
async function signatures({ data }: MxMessage): Promise<string[]> {
  const key = await service.app.db.first<{ public_key: string }>(
    "SELECT public_key FROM dkim_keys WHERE status = 'active' AND domain_id IS NOT NULL",
  );
  const { results } = await dkimVerify(data, {
    resolver: async () => [[`v=DKIM1; k=rsa; p=${key?.public_key}`]],
  });
  return results.map(({ status }) => status.result);
}

const HTML = [
  `From: ${FROM}`,
  `To: ${TO}`,
  "Subject: Links",
  "MIME-Version: 1.0",
  "Content-Type: text/html; charset=utf-8",
];

describe("what leaves", () => {
  test("what leaves is tracked and signed, with octets beyond ASCII", async () => {
    const body = '<p>gr\u00fcn <a href="https://example.com/x">link</a></p>\r\n';
    const { left, record } = await sent({ header: [...HTML, "Content-Transfer-Encoding: 8bit"], body });
    expect(await signatures(left)).toEqual(["pass"]);
    const { html } = await parseMail(left.data);
    expect(html).toContain(`<p>grün <a href="${service.url.replace("127.0.0.1", "localhost").slice(0, 16)}`);
    expect(html).toMatch(/\/c\/[^"]+">link<\/a>/);
    expect(html).toMatch(/<img src="[^"]+\/o\//);
    expect(left.mailFrom).toStartWith("b+");
    expect(record.html).toBe('<p>grün <a href="https://example.com/x">link</a></p>\n');
  });

  test("what leaves is untouched if tracking is off, and its octets beyond ASCII are encoded before it is signed", async () => {
    for (const [word, encoding] of [
      ["green", null],
      ["gr\u00fcn", "quoted-printable"],
    ] as const) {
      const body = `<a href="https://example.com/x">${word}</a>\r\n`;
      const { left } = await sent({ header: [...HTML, "X-Postrider-Track: off"], body });
      expect(await signatures(left)).toEqual(["pass"]);
      if (encoding === null)
        expect(left.data.subarray(left.data.indexOf("\r\n\r\n") + 4).toString()).toBe(body);
      else expect(left.data.toString()).toContain(`\r\nContent-Transfer-Encoding: ${encoding}\r\n`);
      expect((await parseMail(left.data)).html?.trim()).toBe(body.trim());
      const commands = smarthost.commands.items.findLast((line) => line.startsWith("MAIL"));
      expect(commands).not.toContain("BODY=8BITMIME");
    }
  });

  test("with a line over 998 octets passes servers that split it", async () => {
    const body = `${"word ".repeat(400)}\r\n`;
    const { left } = await sent({ header: [...HTML, "X-Postrider-Track: off"], body });
    expect(
      Math.max(
        ...left.data
          .toString()
          .split("\r\n")
          .map((line) => line.length),
      ),
    ).toBeLessThan(999);
    expect(await signatures(left)).toEqual(["pass"]);
    expect((await parseMail(left.data)).html?.trim()).toBe(body.trim());
  });

  test("what leaves keeps a signature of its client's, next to ours", async () => {
    const own = "DKIM-Signature: v=1; a=rsa-sha256; d=other.test; s=x; h=from; bh=eA==; b=eA==";
    const { left } = await sent({ header: [own, ...HTML] });
    expect(left.data.toString()).toContain(`\r\n${own}\r\n`);
    expect(await signatures(left)).toContain("pass");
  });

  test("what leaves has the links and fields of unsubscribing if it asks for them", async () => {
    const body = "<a href='{{unsubscribeUrl}}'>unsubscribe</a>\r\n";
    const { left } = await sent({ header: [...HTML, "X-Postrider-Unsubscribe: on"], body });
    const text = left.data.toString();
    expect(text).toMatch(/\r\nList-Unsubscribe: <[^>]+\/u\/([0-9a-z]+)>,\r\n <mailto:u\+\1@bounce\.\S+>\r\n/);
    expect(text).toContain("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n");
    expect((await parseMail(left.data)).html).toMatch(/href='[^']+\/u\/[0-9a-z]+'/);
    expect(await signatures(left)).toEqual(["pass"]);
  });
});

describe("control fields", () => {
  test("tag and schedule a message, and do not leave", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const header = [...HTML, "X-Postrider-Tag: kind=order", `X-Postrider-Schedule: ${at}`];
    const id = idIn(await submit(service, { header }));
    const record = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(record).toMatchObject({
      status: "accepted",
      scheduledAt: at,
      tags: [{ name: "kind", value: "order" }],
    });
    await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: "2020-01-01T00:00:00Z" });
    await service.message(id, "sent");
    expect(smarthost.messages.items.at(-1)?.data.toString()).not.toContain("X-Postrider");
  });

  test("fill in a template, which keeps the files, the subject and the client's own fields", async () => {
    const template = {
      name: "Welcome",
      html: "<p>Hi {{ name }}</p>",
      text: "Hi {{ name }}",
      subject: "Template",
    };
    await service.call("POST", "/v1/templates", template);
    const parts = [
      "--b",
      "Content-Type: text/plain",
      "",
      "is replaced",
      "--b",
      "Content-Type: application/x-data",
      'Content-Disposition: attachment; filename="a.bin"',
      "",
      "data",
      "--b--",
    ];
    const header = [
      `From: Ana <${FROM}>`,
      `To: ${TO}`,
      "X-Mailer: mine",
      "X-Postrider-Template: welcome",
      'X-Postrider-Data: {"name":"Ben"}',
      "X-Postrider-Track: off",
      "Content-Type: multipart/mixed; boundary=b",
    ];
    const { left, record } = await sent({ header, body: `${parts.join("\r\n")}\r\n` });
    const mail = await parseMail(left.data);
    expect(mail).toMatchObject({ subject: "Template", from: { email: FROM, name: "Ana" } });
    expect([mail.text?.trim(), mail.html?.trim()]).toEqual(["Hi Ben", "<p>Hi Ben</p>"]);
    expect(
      mail.attachments.map(({ filename, bytes }) => [filename, Buffer.from(bytes).toString().trim()]),
    ).toEqual([["a.bin", "data"]]);
    expect(left.data.toString()).toContain("X-Mailer: mine");
    expect(record).toMatchObject({ templateId: "welcome", data: { name: "Ben" } });
    expect(await signatures(left)).toEqual(["pass"]);
  });
});

test("an answer to a message of an inbox joins its thread", async () => {
  const domains = (await service.call("GET", "/v1/domains")).body.data;
  const receiving = await service.call("PATCH", `/v1/domains/${domains[0].id}/receiving`, { enabled: true });
  expect(receiving.status).toBe(200);
  expect((await service.call("POST", "/v1/inboxes", { address: FROM })).status).toBe(201);
  const first = await sent({ header: [...HTML, "Message-ID: <first@from.test>"] });
  const references = "<root@to.test> <first@from.test>";
  const header = [...HTML, "Message-ID: <next@from.test>", `References: ${references}`];
  const { threadId } = (await sent({ header, body: "<p>Are you there?</p>\r\n" })).record;
  expect(threadId).toStartWith("thr_");
  expect(threadId).toBe(first.record.threadId);
  expect((await service.call("GET", `/v1/threads/${threadId}`)).body.preview).toBe("Are you there?");
  const reply = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "I am." });
  const { headers } = await service.message(reply.body.id, "sent");
  expect(headers.References).toBe(`${references} <next@from.test>`);
});
