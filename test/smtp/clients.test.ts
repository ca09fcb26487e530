import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { newFolder } from "../support/folder.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { shareOf } from "../support/share.ts";
import { BODIES, type Program, PROGRAMS, title } from "./client-programs.ts";

/** Programs are slow if the machine is busy. */
const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);
const FROM = "writer@client.test";
const INBOX = "one@in.test";
const OTHER = "two@in.test";
/** One body in three is also sent under TLS. */
const TLS_SHARE = 3;

let service: TestService;
let folder = "";

beforeAll(async () => {
  folder = newFolder("clients");
  service = await startService();
  await receivingInboxes(service, "in.test", [INBOX, OTHER]);
}, LIMIT_MS);
afterAll(async () => {
  await service.stop();
});

/** A message with a unique subject. */
function message(subject: string, body: string | Buffer): Buffer {
  const header = [
    `From: ${FROM}`,
    `To: ${INBOX}`,
    `Subject: ${subject}`,
    "Date: Sat, 01 Jan 2022 00:00:00 +0000",
    `Message-ID: <${Bun.randomUUIDv7()}@client.test>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: 8bit",
  ];
  return Buffer.concat([Buffer.from(`${header.join("\r\n")}\r\n\r\n`), Buffer.from(body)]);
}

interface Kept {
  mailFrom: string;
  tls: string | null;
  raw: Buffer;
}

/** Returns the messages that were just stored with a subject. */
async function kept(subject: string): Promise<Kept[]> {
  const { body } = await service.call("GET", "/v1/emails?direction=inbound&limit=5");
  const ids: string[] = body.data.flatMap((one: { id: string; subject: string }) =>
    one.subject === subject ? one.id : [],
  );
  return Promise.all(
    ids.map(async (id) => {
      const { envelope } = (await service.call("GET", `/v1/emails/${id}`)).body;
      const headers = { authorization: `Bearer ${service.projectKey}` };
      const raw = await (await fetch(`${service.url}/v1/emails/${id}/raw`, { headers })).arrayBuffer();
      return { ...envelope, raw: Buffer.from(raw) };
    }),
  );
}

const TRACE = /^Return-Path: .*\r\nAuthentication-Results: [\s\S]*?\r\nReceived: [\s\S]*?\r\n(?![ \t])/;

/** The stored bytes after our own trace fields. */
function received({ raw }: Kept): Buffer {
  const trace = TRACE.exec(raw.toString("latin1"))?.[0];
  if (trace === undefined) throw new Error(`no trace fields: ${raw.subarray(0, 500).toString("latin1")}`);
  return raw.subarray(trace.length);
}

function arrives(sent: Buffer, { adds }: Program): Buffer {
  return Buffer.concat([sent, Buffer.from(adds)]);
}

for (const [nth, program] of PROGRAMS.entries())
  describe.skipIf(program.missing !== null)(title(program), () => {
    const ways = [false, ...(program.starttls ? [true] : [])];
    test.each(ways)("delivers messages octet for octet, under TLS: %p", async (tls) => {
      const harmed: string[] = [];
      // TLS changes no octet of any body, so each program sends a share of them.
      for (const [name, body] of tls
        ? shareOf(Object.entries(BODIES), TLS_SHARE, nth)
        : Object.entries(BODIES)) {
        const subject = `${name} ${Bun.randomUUIDv7()}`;
        const sent = message(subject, body);
        await program.send({ port: service.smtpPort, folder, from: FROM, to: [INBOX], message: sent, tls });
        const [mail, ...more] = await kept(subject);
        if (mail === undefined || more.length > 0) harmed.push(`${name}: kept ${more.length} times`);
        else if (!received(mail).equals(arrives(sent, program))) harmed.push(`${name}: other octets`);
        else if ((mail.tls === null) === tls) harmed.push(`${name}: under ${mail.tls}`);
      }
      expect(harmed).toEqual([]);
    });

    test("delivers a message to several", async () => {
      const subject = `several ${Bun.randomUUIDv7()}`;
      const sent = message(subject, "x\r\n");
      await program.send({
        port: service.smtpPort,
        folder,
        from: FROM,
        to: [INBOX, OTHER],
        message: sent,
        tls: false,
      });
      const mails = await kept(subject);
      expect(mails.map((mail) => received(mail).equals(arrives(sent, program)))).toEqual([true, true]);
    });

    test.skipIf(!program.smtpUtf8)("delivers a message from an address beyond ASCII", async () => {
      const subject = `utf8 ${Bun.randomUUIDv7()}`;
      const sent = message(subject, "x\r\n");
      const from = "jürgen@client.test";
      await program.send({ port: service.smtpPort, folder, from, to: [INBOX], message: sent, tls: false });
      const [mail] = await kept(subject);
      expect(mail?.mailFrom).toBe(from);
      expect(mail?.raw.toString()).toContain("with UTF8SMTP");
    });
  });
