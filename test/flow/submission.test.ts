import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time/units.ts";
import { manualClock } from "../support/manual-clock.ts";
import { recounted } from "../support/recount.ts";
import { SERVICE_DOMAIN, OWNER, startService, type TestService, verifiedDomain } from "../support/service.ts";
import {
  FROM,
  idIn,
  loggedIn,
  messageOf,
  rawOf,
  submit,
  submitIn,
  submissionPort,
  TO,
} from "../support/submit.ts";
import { Client } from "../smtp/server-harness.ts";

const SUBMISSION = {
  SUBMISSION_PORT: "0",
  SUBMISSION_HOST: "127.0.0.1",
  SUBMISSION_INSECURE_LOOPBACK: "1",
};

let service: TestService;

beforeAll(async () => {
  service = await startService({ ...SUBMISSION, MAX_MESSAGE_BYTES: "100000" });
  await verifiedDomain(service, "from.test");
});
afterAll(() => service.stop());

/** Makes a key of the project with some scopes. */
async function keyWith(scopes: string[]): Promise<{ id: string; secret: string }> {
  const { senderId } = (await service.call("GET", "/v1/api-keys")).body.data[0];
  return (await service.call("POST", "/v1/api-keys", { name: "smtp", senderId, scopes })).body;
}

/** The header and body after our DKIM-Signature. */
function unsigned(raw: string): string {
  expect(raw).toStartWith("DKIM-Signature: ");
  return raw.replace(/^DKIM-Signature: [\s\S]*?\r\n(?![ \t])/, "");
}

/** An address of ours, and one of another domain beyond what is read of a field's value. */
const FORGED_FROM = [`From: "${FROM}"${" \r\n ".repeat(17_000 / 2)}<ceo@victim.test>`, `To: ${TO}`];

describe("a submitted message", () => {
  test("a submitted message is kept octet by octet, with parts of every kind, and signed", async () => {
    const header = [
      "Date: Sat, 31 Jan 2026 09:30:00 +0100",
      "Message-ID: <its.own@from.test>",
      `from: "Shop, The" <${FROM}>`,
      `TO: Ben <${TO}>`,
      "Subject: odd  \r\n\t folds",
      "X-Own:  kept",
      "MIME-Version: 1.0",
      'Content-Type: multipart/mixed; boundary="=b"',
    ];
    const parts = [
      [
        "Content-Type: text/html; charset=utf-8",
        "Content-Transfer-Encoding: 8bit",
        "",
        '<a href="https://x.example/">gr\xc3\xbc</a>',
      ],
      ["Content-Type: text/calendar; method=REQUEST", "", "BEGIN:VCALENDAR"],
      [
        "Content-Type: x-unknown/x-type",
        "Content-Disposition: attachment; filename=a.bin",
        "",
        "..\xff\x01 ",
      ],
      ["Content-Type: message/rfc822", "", "Subject: within", "", "body"],
    ];
    const body = `preamble\r\n${parts.map((part) => `--=b\r\n${part.join("\r\n")}\r\n`).join("")}--=b--\r\nepilogue\r\n`;
    const sent = Buffer.from(`${header.join("\r\n")}\r\n\r\n${body}`, "latin1");
    const removed = ["Bcc: hidden@to.test", "X-Postrider-Track: off", "Return-Path: <x@y.example>"];
    const client = await loggedIn(service, service.projectKey);
    for (const line of [`MAIL FROM:<${FROM}>`, `RCPT TO:<${TO}>`, "DATA"]) await client.say(line);
    const stuffed = sent.toString("latin1").replaceAll("\r\n.", "\r\n..");
    client.send(Buffer.from(`${removed.join("\r\n")}\r\n${stuffed}.\r\n`, "latin1"));
    const id = idIn((await client.reply()).trimEnd());
    const record = await service.message(id, "delivered");
    // Only what servers on the way might change is encoded, and Feedback-ID added.
    const encoded = sent
      .toString("latin1")
      .replace("8bit\r\n\r\n", "quoted-printable\r\n\r\n")
      .replace('="https://x.example/">gr\xc3\xbc', '=3D"https://x.example/">gr=C3=BC')
      .replace(
        "a.bin\r\n\r\n..\xff\x01 \r\n",
        "a.bin\r\nContent-Transfer-Encoding: base64\r\n\r\nLi7/ASA=\r\n",
      );
    const raw = unsigned(await rawOf(service, id));
    expect(raw.replace(/Feedback-ID: snd_\w+:transactional:[0-9a-f]{12}\r\n/, "")).toBe(encoded);
    expect(record).toMatchObject({
      messageId: "<its.own@from.test>",
      from: FROM,
      fromName: "Shop, The",
      to: [TO],
      subject: "odd    folds",
      html: '<a href="https://x.example/">grü</a>\n',
      headers: { "X-Own": "kept" },
      envelope: { mailFrom: FROM, rcptTo: [TO], ip: "127.0.0.1", helo: "client.test", tls: null },
    });
    expect(record.attachments.map(({ filename }: { filename: string }) => filename)).toEqual([
      "invite.ics",
      "a.bin",
      "message.eml",
    ]);
    const headers = { authorization: `Bearer ${service.projectKey}` };
    const url = `${service.url}/v1/emails/${id}/attachments/${record.attachments[1].id}`;
    expect(Buffer.from(await (await fetch(url, { headers })).arrayBuffer()).toString("latin1")).toBe(
      "..\xff\x01 ",
    );
  });

  test("a submitted message goes to the envelope's recipients: those in To and Cc are that, and the others are blind copies", async () => {
    const header = [`From: ${FROM}`, "To: Ben <BEN@to.test>, ann@to.test", "Cc: cy@to.test"];
    const id = idIn(await submit(service, { header, to: [TO, "cy@to.test", "di@to.test"] }));
    const record = await service.message(id, "delivered");
    expect(record).toMatchObject({ to: [TO], cc: ["cy@to.test"], bcc: ["di@to.test"] });
    expect(record.recipients.map(({ kind }: { kind: string }) => kind)).toEqual(["to", "cc", "bcc"]);
    expect(await rawOf(service, id)).not.toContain("di@to.test");
  });

  const texts = [
    "--=b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\ngrün, code 482913\r\n",
    '--=b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<a href="https://x.example/1">grün</a>\r\n--=b--\r\n',
  ].join("");
  const alternatives = 'Content-Type: multipart/alternative; boundary="=b"';
  const file =
    "--=f\r\nContent-Type: text/plain\r\nContent-Disposition: attachment\r\n\r\na file\r\n--=f--\r\n";
  const withFile = `--=f\r\n${alternatives}\r\n\r\n${texts}${file}`;
  test.each([
    ["is nothing but texts", 0, alternatives, texts],
    ["has a file", 1, 'Content-Type: multipart/mixed; boundary="=f"', withFile],
  ])(
    "a submitted message that %s shows them in its record, and is stored whole",
    async (_, files, type, body) => {
      const header = [`From: ${FROM}`, "Subject: Code", "Bcc: x@to.test", type];
      const id = idIn(await submit(service, { header, body }));
      const record = await service.message(id, "delivered");
      expect(record).toMatchObject({
        text: "grün, code 482913\n",
        html: '<a href="https://x.example/1">grün</a>\n',
        links: [{ url: "https://x.example/1", text: "grün" }],
        codes: ["482913"],
      });
      expect(Object.keys(record.headers)).toEqual(["From", "Subject", "Content-Type"]);
      expect(record.attachments).toHaveLength(files);
      // Bodies that only the message holds are stored once.
      const stored = await service.app.db.first<{ body: unknown; raw: unknown }>(
        "SELECT body, raw FROM message_content WHERE message_id = ?",
        [id],
      );
      expect([stored?.body === null, stored?.raw === null]).toEqual([files === 0, false]);
    },
  );

  test("a submitted message loses findings and signatures in our name", async () => {
    const forged = ["Authentication-Results : (x) MX.mail.test;\r\n dmarc=pass", "Subject: x"];
    const id = idIn(await submit(service, { header: [`From: ${FROM}`, ...forged] }));
    const raw = await rawOf(service, id);
    expect(raw).toContain("Subject: x");
    expect(raw).not.toContain("Authentication-Results");
  });

  test("a submitted message gets Date and Message-ID if it has none", async () => {
    const id = idIn(await submit(service));
    const raw = await rawOf(service, id);
    expect(raw).toContain(`\r\nMessage-ID: <${id}@from.test>\r\n`);
    expect(raw).toMatch(/\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\r\n/);
    expect((await service.message(id, "delivered")).messageId).toBe(`<${id}@from.test>`);
  });

  test("a submitted message may have any return path, and may come by BDAT", async () => {
    expect(await submit(service, { mailFrom: "" })).toStartWith("250");
    const client = await loggedIn(service, service.projectKey);
    await client.say("MAIL FROM:<bounces@elsewhere.example> BODY=8BITMIME");
    await client.say(`RCPT TO:<${TO}> NOTIFY=SUCCESS`);
    const message = messageOf({});
    client.send(`BDAT 10\r\n${message.slice(0, 10)}BDAT ${message.length - 10} LAST\r\n${message.slice(10)}`);
    expect(await client.codes(1)).toEqual(["250"]);
    idIn((await client.reply()).trimEnd());
  });

  test("a submitted message reaches only the owner from the onboarding domain", async () => {
    const header = [`From: me@onboarding.${SERVICE_DOMAIN}`, "To: x"];
    expect(await submit(service, { header, to: [OWNER] })).toStartWith("250 2.0.0");
    expect(await submit(service, { header })).toStartWith("550 5.7.1 From the onboarding domain");
  });

  test("a submitted message leaves suppressed recipients out", async () => {
    await service.call("POST", "/v1/suppressions", { email: "no@to.test" });
    const id = idIn(await submit(service, { to: ["No@to.test", TO] }));
    const { recipients } = await service.message(id, "rejected");
    expect(recipients).toMatchObject([{ status: "delivered" }, { status: "rejected", reason: "suppressed" }]);
  });

  test("a submitted message is one simulated bounce like a posted one", async () => {
    const id = idIn(await submit(service, { to: [`bounced@simulator.${SERVICE_DOMAIN}`] }));
    await service.message(id, "bounced");
  });
});

describe("a submission is refused", () => {
  const replies: [string, string, Parameters<typeof submit>[1]][] = [
    ["from a domain that is not the project's", "550 5.7.1", { header: ["From: x@other.test"] }],
    ["without From", "550 5.7.1", { header: ["To: x"] }],
    ["with two authors", "550 5.7.1", { header: [`From: ${FROM}, x@from.test`] }],
    ["with two From fields", "550 5.7.1", { header: [`From: ${FROM}`, "From: x@other.test"] }],
    ["with an author without a domain", "550 5.7.1", { header: ["From: root"] }],
    ["with a line that is no field", "550 5.6.0", { header: [`From: ${FROM}`, "Hello"] }],
    ["with a malformed control field", "550 5.6.0", { header: [`From: ${FROM}`, "X-Postrider-Track: x"] }],
    [
      "with a template that does not exist",
      "550 5.6.0",
      { header: [`From: ${FROM}`, "X-Postrider-Template: x"] },
    ],
    ["over the size, announced", "552 5.3.4", { parameters: " SIZE=100001" }],
    ["over the size, not announced", "552 5.3.4", { body: `${"x".repeat(70)}\r\n`.repeat(1400) }],
    ["to an address that no mail can be sent to", "550 5.1.3", { to: ['"a b"@to.test'] }],
    [
      "for another project than the key's",
      "550 5.7.1",
      { header: [`From: ${FROM}`, "X-Postrider-Project: other"] },
    ],
    ["from a second address after the octets that a record shows", "550 5.7.1", { header: FORGED_FROM }],
    ["sent by a stranger", "550 5.7.1", { header: [`From: ${FROM}`, "Sender: ceo@victim.test"] }],
    [
      "with an ambiguous Reply-To",
      "550 5.6.0",
      { header: [`From: ${FROM}`, "Reply-To: <a@b.test><c@d.test>"] },
    ],
    ["if it loops", "554 5.4.6", { header: [...Array(101).fill("Received: by x"), `From: ${FROM}`] }],
  ];
  test.each(replies)("%s: %s", async (_, expected, what) => {
    expect(await submit(service, what)).toStartWith(expected);
  });

  test("without a recipient: 554 5.5.1", async () => {
    const client = await loggedIn(service, service.projectKey);
    await client.say(`MAIL FROM:<${FROM}>`);
    await client.say('RCPT TO:<"a b"@to.test>');
    expect(await client.say("DATA")).toStartWith("554 5.5.1");
  });

  test("beyond the recipients of a message: 452 4.5.3", async () => {
    const client = await loggedIn(service, service.projectKey);
    await client.say(`MAIL FROM:<${FROM}>`);
    for (let one = 0; one < 50; one++)
      expect(await client.say(`RCPT TO:<r${one}@to.test>`)).toStartWith("250");
    expect(await client.say("RCPT TO:<r50@to.test>")).toStartWith("452 4.5.3");
    expect(await client.say("DATA")).toStartWith("354");
    client.send(`${messageOf({})}.\r\n`);
    const { recipients } = (await service.call("GET", `/v1/emails/${idIn((await client.reply()).trimEnd())}`))
      .body;
    expect(recipients).toHaveLength(50);
  });

  test("a submission over the day's volume or of a suspended project is refused", async () => {
    const options = { key: service.accountKey };
    const project = (await service.call("POST", "/v1/senders", { name: "small" }, options)).body;
    const made = { name: "k", senderId: project.id };
    const key = (await service.call("POST", "/v1/api-keys", made, options)).body.secret;
    await verifiedDomain(service, "small.test", key);
    const change = (changes: object) => service.call("PATCH", `/v1/senders/${project.id}`, changes, options);
    const what = { key, header: ["From: a@small.test"] };
    await change({ dailyQuota: 1 });
    expect(await submit(service, what)).toStartWith("250 2.0.0");
    expect(await submit(service, what)).toStartWith("452 4.3.1 The project's quota");
    await change({ suspendedAt: new Date().toISOString(), dailyQuota: 10 });
    expect(await submit(service, what)).toStartWith("550 5.7.1 Sending is suspended");
    await change({ suspendedAt: null, plan: "free" });
    const client = await loggedIn(service, key);
    const answers: string[] = [];
    for (let one = 0; one < 40 && !answers.some((answer) => answer.includes("Too many messages")); one++)
      answers.push(await submitIn(client, { ...what, header: ["From: x@other.test"] }));
    expect(answers.at(-1)).toStartWith("452 4.3.1 Too many messages");
  });

  test("if the key may not send, or was revoked: 535 5.7.8", async () => {
    const reader = await keyWith(["emails:read"]);
    const gone = await keyWith(["emails:send"]);
    const client = await loggedIn(service, gone.secret);
    expect(await submitIn(client, {})).toStartWith("250 2.0.0");
    await service.call("DELETE", `/v1/api-keys/${gone.id}`);
    expect(await submitIn(client, {})).toStartWith("421 4.7.0");
    for (const key of [reader.secret, gone.secret, "pr_none", "x".repeat(513)])
      expect(loggedIn(service, key)).rejects.toThrow(key.length > 512 ? "501 5.5.2" : "535 5.7.8");
  });
});

describe("a key with bounds", () => {
  async function bound(bounds: object): Promise<string> {
    const { senderId } = (await service.call("GET", "/v1/api-keys")).body.data[0];
    const made = { name: "agent", senderId, scopes: ["emails:send"], ...bounds };
    return (await service.call("POST", "/v1/api-keys", made)).body.secret;
  }

  test("a key with bounds reaches the recipients that it may send to, and no others", async () => {
    const key = await bound({ allowRecipients: [TO] });
    expect(await submit(service, { key })).toStartWith("250 2.0.0");
    expect(await submit(service, { key, to: [TO, "other@to.test"] })).toStartWith("550 5.7.1");
  });

  test("a key with bounds waits for approval if it needs that", async () => {
    const key = await bound({ approval: true });
    const id = idIn(await submit(service, { key }));
    const { status, recipients } = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect([status, recipients[0].reason]).toEqual(["accepted", "awaiting_approval"]);
    await service.call("POST", `/v1/emails/${id}/approve`);
    await service.message(id, "delivered");
  });
});

describe("an account-wide key", () => {
  const header = [`From: ${FROM}`, `To: ${TO}`];

  test("acts for the project of X-Postrider-Project, else for that of the user name", async () => {
    const key = service.accountKey;
    expect(await submit(service, { key, header: [...header, "X-Postrider-Project: default"] })).toStartWith(
      "250",
    );
    expect(await submit(service, { key, user: "default", header })).toStartWith("250 2.0.0");
    const named = [...header, "X-Postrider-Project: nowhere"];
    expect(await submit(service, { key, user: "default", header: named })).toStartWith("550 5.7.1");
    for (const user of ["", "nowhere"])
      expect(await submit(service, { key, user, header })).toStartWith("550 5.7.1 No such project");
  });
});

describe("a repeated Idempotency-Key", () => {
  test("a repeated Idempotency-Key gets the same id and sends nothing, whatever the message is", async () => {
    const header = [`From: ${FROM}`, `To: ${TO}`, "Subject: one", "Idempotency-Key: order-1"];
    const id = idIn(await submit(service, { header }));
    expect(idIn(await submit(service, { header: [...header, "X-Other: 1"], body: "another\r\n" }))).toBe(id);
    const listed = await service.call("GET", "/v1/emails?q=one");
    expect(listed.body.data).toHaveLength(1);
    expect(await rawOf(service, id)).not.toContain("Idempotency-Key");
  });

  test("a repeated Idempotency-Key is a new message after 24 hours, and not a millisecond earlier", async () => {
    const clock = manualClock();
    const own = await startService(SUBMISSION, clock);
    const again = async () =>
      idIn(await submit(own, { key: null, header: [`From: ${FROM}`, "Idempotency-Key: order-3"] }));
    const first = await again();
    clock.step(DAY_MS - 1);
    expect(await again()).toBe(first);
    clock.step(1);
    expect(await again()).not.toBe(first);
    await own.stop();
  });

  test("a repeated Idempotency-Key counts once, even in sessions at the same time", async () => {
    const header = [`From: ${FROM}`, `To: ${TO}`, "Idempotency-Key: order-2"];
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => idIn(await submit(service, { header }))),
    );
    expect(new Set(ids).size).toBe(1);
  });
});

test("the metrics count submissions by outcome", async () => {
  await submit(service);
  const text = await service.metrics();
  for (const outcome of ["accepted", "refused"])
    expect(text).toMatch(new RegExp(`postrider_submitted_messages_total\\{outcome="${outcome}"\\} [1-9]`));
});

describe("without a key", () => {
  test("programs of this machine are served in capture mode, from any address, and count in no quota", async () => {
    const used = async () => (await service.call("GET", "/v1/quota")).body.used;
    const before = await used();
    const id = idIn(
      await submit(service, { key: null, header: ["From: cron <root@localhost>", "Subject: x"] }),
    );
    const record = await service.message(id, "delivered");
    expect(record).toMatchObject({ from: "root@localhost", testMode: true, bcc: [TO] });
    expect(
      idIn(await submit(service, { key: null, header: ["Subject: none"], mailFrom: "root@host" })),
    ).toStartWith("msg_");
    expect(await used()).toBe(before);
  });

  test("are refused a From that readers could disagree about", async () => {
    const refused = await submit(service, { key: null, header: ["From: <a@any.test><b@other.test>"] });
    expect(refused).toStartWith("550 5.7.1 From must have one address");
  });

  test("fill up no room of the project, and are taken when it has none", async () => {
    const stored = async (of: TestService) => (await of.call("GET", "/v1/quota")).body.resources.storedOctets;
    const own = await startService(SUBMISSION);
    try {
      await verifiedDomain(own, "from.test");
      const template = { name: "T", slug: "t", subject: "S", text: "Hi {{ name }}" };
      expect((await own.call("POST", "/v1/templates", template)).status).toBe(201);
      const { used } = await stored(own);
      const plans = ["free", "pro", "unlimited"].map(() => used).join(",");
      await own.restart({ QUOTA_STORED_OCTETS: plans });
      for (const [header, body] of [
        [["Subject: texts"], "Hi\r\n"],
        [["Subject: file", "Content-Type: text/plain", "Content-Disposition: attachment"], "file\r\n"],
        [["Subject: large"], `${"x".repeat(70)}\r\n`.repeat(9000)],
        [["X-Postrider-Template: t", 'X-Postrider-Data: {"name":"Ben"}'], "draft\r\n"],
        [["Idempotency-Key: once"], "Hi\r\n"],
      ] as const) {
        const id = idIn(await submit(own, { key: null, header: [`From: ${FROM}`, ...header], body }));
        await own.message(id, "delivered");
      }
      expect(await stored(own)).toMatchObject({ used, limit: used });
      const projects = (await own.call("GET", "/v1/senders", undefined, { key: own.accountKey })).body.data;
      const { counters, tables } = await recounted(own.app.db, projects[0].id);
      expect(tables).toEqual(counters);
      const posted = await own.call("POST", "/v1/emails", { from: FROM, to: [TO], subject: "x", text: "x" });
      expect(posted).toMatchObject({ status: 403, body: { error: { code: "quota_exceeded" } } });
    } finally {
      await own.stop();
    }
  });

  test("show the bytes as they came", async () => {
    const id = idIn(await submit(service, { key: null, header: ["From: cron <root@localhost>"] }));
    expect(await rawOf(service, id)).toStartWith("From: cron <root@localhost>\r\n");
  });

  test("none of it leaves after the mode has changed, and no message is taken", async () => {
    const own = await startService(SUBMISSION);
    try {
      await verifiedDomain(own, "from.test");
      const at = new Date(Date.now() + 3_600_000).toISOString();
      const header = [`From: ${FROM}`, `X-Postrider-Schedule: ${at}`];
      const id = idIn(await submit(own, { key: null, header }));
      await own.restart({ DELIVERY: "mx" });
      await own.call("PATCH", `/v1/emails/${id}`, { scheduledAt: new Date().toISOString() });
      const { recipients } = await own.message(id, "rejected");
      expect(recipients).toMatchObject([{ reason: "capture_only" }]);
      const client = await Client.connect(submissionPort(own));
      await client.say("EHLO x");
      expect(await client.say(`MAIL FROM:<${FROM}>`)).toStartWith("530 5.7.0");
    } finally {
      await own.stop();
    }
  });
});
