import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

let service: TestService;

beforeEach(async () => {
  service = await startService();
});
afterEach(() => service.stop());

/** Runs swaks against the listener. Resolves with its exit code and transcript. */
async function swaks(...args: string[]): Promise<{ code: number; text: string }> {
  const child = Bun.spawn(
    ["swaks", "--server", `127.0.0.1:${service.smtpPort}`, "--helo", "client.test", ...args],
    {
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const text = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text());
  return { code: await child.exited, text };
}

async function inbound() {
  const list = await service.call("GET", "/v1/emails?direction=inbound");
  const ids: string[] = list.body.data.map((summary: { id: string }) => summary.id);
  return Promise.all(ids.map(async (id) => (await service.call("GET", `/v1/emails/${id}`)).body));
}

describe("a message to an inbox", () => {
  test.each([
    ["no recipient", []],
    ["hidden ones", ["--header", "To: undisclosed-recipients:;"]],
  ])("a message to an inbox that names %s is shown with the address it came to", async (_name, fields) => {
    await receivingInboxes(service, "in.test", ["support@in.test"]);
    const data = ["--data", "Subject: x\\n\\nbody\\n"];
    await swaks(
      "--from",
      "ada@client.test",
      "--to",
      "Support+a@in.test",
      ...(fields.length > 0 ? fields : data),
    );
    const [record] = await inbound();
    expect(record.to).toEqual(["Support+a@in.test"]);
  });

  test.each([
    ["EHLO", "ESMTP", "ESMTP"],
    ["HELO", "SMTP", "SMTP"],
  ])("a message after %s says so in its Received field: with %s", async (_name, protocol, keyword) => {
    await receivingInboxes(service, "in.test", ["support@in.test"]);
    await swaks("--protocol", protocol, "--from", "ada@client.test", "--to", "support@in.test");
    const [record] = await inbound();
    expect(record.headers.Received).toContain(` with ${keyword} `);
  });

  test.each([
    ["in the clear", []],
    ["over STARTTLS", ["--tls"]],
  ])("%s is stored, threaded and announced before its 250", async (_, flags) => {
    const [inboxId] = await receivingInboxes(service, "in.test", ["support@in.test"]);
    const sent = await swaks(
      "--from",
      "ada@client.test",
      "--to",
      "Support+ticket@IN.test",
      "--header",
      "Subject: Help =?UTF-8?Q?m=C3=BCde?=",
      "--header",
      "Message-Id: <first@client.test>",
      "--body",
      "My question",
      ...flags,
    );
    expect(sent.code).toBe(0);
    const [record] = await inbound();
    expect(record).toMatchObject({
      direction: "inbound",
      status: "delivered",
      from: "ada@client.test",
      subject: "Help müde",
      text: expect.stringMatching(/^My question\n+$/),
      messageId: "<first@client.test>",
      inboxId,
      envelope: {
        mailFrom: "ada@client.test",
        rcptTo: ["Support+ticket@IN.test"],
        helo: "client.test",
        ip: "127.0.0.1",
      },
      events: [{ type: "inbound_received" }],
    });
    expect(record.envelope.tls === null).toBe(flags.length === 0);
    expect(record.threadId).toMatch(/^thr_/);
  });

  test("joins the thread of the message it answers, including sent ones", async () => {
    await receivingInboxes(service, "in.test", ["support@in.test"]);
    await swaks(
      "--from",
      "ada@client.test",
      "--to",
      "support@in.test",
      "--header",
      "Message-Id: <one@client.test>",
    );
    const [first] = await inbound();
    const reply = await service.call("POST", "/v1/emails", {
      from: { email: "support@in.test" },
      to: [{ email: "ada@client.test" }],
      subject: "Re: test",
      text: "An answer",
      headers: { "In-Reply-To": "<one@client.test>", References: "<one@client.test>" },
    });
    const sent = await service.message(reply.body.id, "delivered");
    expect(sent.threadId).toBe(first.threadId);
    await swaks(
      "--from",
      "ada@client.test",
      "--to",
      "support@in.test",
      "--header",
      `In-Reply-To: ${sent.messageId}`,
    );
    await swaks("--from", "ada@client.test", "--to", "support@in.test", "--header", "Subject: Re: test");
    const threads = (await inbound()).map((record) => record.threadId);
    expect(threads.filter((thread) => thread === first.threadId).length).toBe(2);
    expect(new Set(threads).size).toBe(2);
  });

  test("a message to an inbox reaches each of several inboxes as a separate message that does not name the other addresses", async () => {
    await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
    expect((await swaks("--to", "a@in.test,a+x@in.test,b@in.test", "--body", "To all")).code).toBe(0);
    const records = await inbound();
    expect(records.map((record) => record.envelope.rcptTo).sort()).toEqual([
      ["a@in.test", "a+x@in.test"],
      ["b@in.test"],
    ]);
    for (const { id, text } of records) {
      expect(text).toMatch(/^To all\n/);
      expect((await service.call("GET", `/v1/emails/${id}/raw`)).body).toContain("To all\r\n");
    }
    const kept = "SELECT refs FROM contents WHERE key IN (SELECT raw FROM message_content)";
    expect(await service.app.db.all<unknown>(kept)).toEqual([{ refs: 2 }]);
  });

  test("a message to an inbox is refused once receiving is disabled", async () => {
    await receivingInboxes(service, "in.test", ["a@in.test"]);
    const domains = await service.call("GET", "/v1/domains");
    await service.call("PATCH", `/v1/domains/${domains.body.data[0].id}/receiving`, { enabled: false });
    const refused = await swaks("--to", "a@in.test");
    expect(refused.text).toContain("550 5.1.2");
    expect(await inbound()).toEqual([]);
  });
});

describe("RCPT refuses", () => {
  test.each([
    ["a mailbox that does not exist", "nobody@in.test", "550 5.1.1"],
    ["a domain that is not ours", "a@elsewhere.test", "550 5.1.2"],
    ["a percent hack", "a%elsewhere.test@in.test", "550 5.1.1"],
    ["a bang path", "elsewhere.test!a@in.test", "550 5.1.1"],
    ["an unknown address at the service domain", `somebody@${SERVICE_DOMAIN}`, "550 5.1.1"],
    ["a forged bounce token", `b+${"0".repeat(44)}@bounce.${SERVICE_DOMAIN}`, "550 5.1.1"],
  ])("%s", async (_, to, reply) => {
    await receivingInboxes(service, "in.test", ["a@in.test"]);
    const refused = await swaks("--to", to);
    expect(refused.text).toContain(reply);
    expect(await inbound()).toEqual([]);
  });
});

test("smtp-source's messages all arrive, each once", async () => {
  await receivingInboxes(service, "in.test", ["load@in.test"]);
  const child = Bun.spawn([
    "/usr/sbin/smtp-source",
    "-s",
    "10",
    "-m",
    "200",
    "-l",
    "4096",
    "-f",
    "a@client.test",
    "-t",
    "load@in.test",
    `127.0.0.1:${service.smtpPort}`,
  ]);
  expect(await child.exited).toBe(0);
  const row = await service.app.db.first<{ n: number }>(
    "SELECT count(*) AS n FROM messages WHERE direction = 'inbound'",
  );
  expect(row?.n).toBe(200);
});
