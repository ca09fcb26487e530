import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { newFolder } from "../support/folder.ts";
import { postfix, startPostfix } from "../support/peers/postfix.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { FROM, rawOf, TO } from "../support/submit.ts";
import { BODIES, type Mail, type Program, PROGRAMS, title } from "./client-programs.ts";

/** Programs are slow if the machine is busy. */
const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);
const MIB = 1024 * 1024;

/** Bodies that are soon sent. */
const SMALL_BODIES = Object.entries(BODIES).filter(([name]) => name !== "5 MB");
const NODEMAILER = theProgram("nodemailer");

function theProgram(name: string): Program {
  const program = PROGRAMS.find((one) => one.name === name);
  if (program === undefined) throw new Error(`there is no ${name}`);
  return program;
}

/** Bodies that a server on the way might change. */
const ENCODED_BODIES = ["UTF-8", "octets beyond ASCII", "long lines"];
/** The last field of every message, and what it becomes if we encode the body. */
const GIVEN = "Content-Transfer-Encoding: 8bit\r\n";
const ENCODED = "Content-Transfer-Encoding: quoted-printable\r\n";

let service: TestService;
let folder = "";

beforeAll(async () => {
  folder = newFolder("submission-clients");
  service = await startService({
    SUBMISSION_PORT: "0",
    SUBMISSIONS_PORT: "0",
    SUBMISSION_HOST: "127.0.0.1",
    // The default is 25 MiB as well.
    MAX_MESSAGE_BYTES: String(25 * MIB),
  });
  await verifiedDomain(service, "from.test");
}, LIMIT_MS);
afterAll(() => service.stop());

/** A message with a unique subject. */
function message(subject: string, body: string | Buffer, from = FROM): Buffer {
  const header = [
    `From: ${from}`,
    `To: ${TO}`,
    `Subject: ${subject}`,
    "Date: Sat, 01 Jan 2022 00:00:00 +0000",
    `Message-ID: <${Bun.randomUUIDv7()}@from.test>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
  ];
  return Buffer.concat([Buffer.from(`${header.join("\r\n")}\r\n${GIVEN}\r\n`), Buffer.from(body)]);
}

/** Sends over the port that fits, with the project's key. */
function send(program: Program, mail: Pick<Mail, "message"> & Partial<Mail>): Promise<void> {
  const { submission, submissions } = service.app.ports;
  const { tls = true } = mail;
  const port = (tls === "implicit" ? submissions : submission) ?? 0;
  const login = { user: "shop", password: service.projectKey };
  return program.send({ port, folder, from: FROM, to: [TO], tls, login, ...mail });
}

interface Kept {
  record: { recipients: unknown[]; envelope: Mail };
  /** Its octets without our signature and Feedback-ID, in the encoding that its program gave it. */
  raw: Buffer;
  /** True if we encoded its body for servers on the way. */
  isEncoded: boolean;
}

/** Returns the only message with a subject. */
async function kept(subject: string): Promise<Kept> {
  const { body } = await service.call(
    "GET",
    `/v1/emails?direction=outbound&q=${encodeURIComponent(subject)}`,
  );
  const [{ id }, ...more] = body.data;
  if (more.length > 0) throw new Error(`${subject} was kept ${more.length} more times`);
  const record = (await service.call("GET", `/v1/emails/${id}`)).body;
  return { record, ...asGiven(await rawOf(service, id)) };
}

/** Takes back what we changed of a message: our two fields, and the encoding of its body. */
function asGiven(sent: string): Pick<Kept, "raw" | "isEncoded"> {
  const whole = sent.replace(/^DKIM-Signature: [\s\S]*?\r\n(?![ \t])/, "");
  const end = whole.indexOf("\r\n\r\n") + 2;
  const header = whole.slice(0, end).replace(/^Feedback-ID: snd_\w+:transactional:[0-9a-f]{12}\r\n/m, "");
  const body = whole.slice(end);
  if (/[\x80-\xff]|[^\r\n]{999}/.test(body)) throw new Error("a server on the way might change the body");
  const isEncoded = header.endsWith(ENCODED);
  const given = isEncoded ? header.slice(0, -ENCODED.length) + GIVEN + decoded(body) : header + body;
  return { raw: Buffer.from(given, "latin1"), isEncoded };
}

/** Decodes quoted-printable (RFC 2045 §6.7). */
function decoded(body: string): string {
  return body
    .replaceAll("=\r\n", "")
    .replace(/=([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function unique(name: string): string {
  return `${name.replaceAll(" ", "-")}-${Bun.randomUUIDv7()}`;
}

/** Each program that knows TLS, one of the two Pythons. */
const TRIED = PROGRAMS.filter(({ name, starttls }) => starttls && name !== "the path's python");
for (const program of TRIED)
  describe.skipIf(program.missing !== null)(title(program), () => {
    test("logs in and sends every message octet by octet, encoding only bodies that need it", async () => {
      const harmed: string[] = [];
      const encoded: string[] = [];
      for (const [name, body] of SMALL_BODIES) {
        const subject = unique(name);
        const sent = message(subject, body);
        await send(program, { message: sent });
        const { raw, isEncoded } = await kept(subject);
        if (!raw.equals(Buffer.concat([sent, Buffer.from(program.adds)]))) harmed.push(name);
        if (isEncoded) encoded.push(name);
      }
      expect({ harmed, encoded }).toEqual({ harmed: [], encoded: ENCODED_BODIES });
    });

    test("sends under TLS from the start", async () => {
      const subject = unique("implicit");
      await send(program, { message: message(subject, "x\r\n"), tls: "implicit" });
      expect((await kept(subject)).record.envelope.tls).toStartWith("TLSv1.");
    });

    test("fails with a wrong key", async () => {
      const login = { user: "shop", password: "pr_wrong" };
      const sent = send(program, { message: message(unique("wrong"), "x\r\n"), login });
      expect(await sent.catch(String)).toMatch(/535|[Aa]uth|denied/);
    });

    test("sends to fifty recipients at once", async () => {
      const subject = unique("fifty");
      const to = Array.from({ length: 50 }, (_, at) => `r${at}@to.test`);
      await send(program, { message: message(subject, "x\r\n"), to });
      expect((await kept(subject)).record.recipients).toHaveLength(50);
    });

    test.skipIf(!program.smtpUtf8)("sends to and from addresses beyond ASCII", async () => {
      const subject = unique("utf8");
      const from = "jürgen@from.test";
      const sent = message(subject, "x\r\n", from);
      await send(program, { message: sent, from, to: ["bjørn@to.test"] });
      const { raw, record, isEncoded } = await kept(subject);
      expect(raw.equals(sent)).toBe(true);
      expect(isEncoded).toBe(false);
      expect(record).toMatchObject({ bcc: ["bjørn@to.test"], envelope: { smtpUtf8: true } });
    });
  });

test("nodemailer sends almost 25 MB, and no more than the limit", async () => {
  const subject = unique("large");
  const line = `${"0123456789".repeat(7)}\r\n`;
  const sent = message(subject, line.repeat(Math.floor((25 * MIB - 2000) / line.length)));
  await send(NODEMAILER, { message: sent });
  const { raw, isEncoded } = await kept(subject);
  expect(raw.equals(sent)).toBe(true);
  expect(isEncoded).toBe(false);
  const over = message(subject, line.repeat(Math.ceil((25 * MIB) / line.length)));
  expect(await send(NODEMAILER, { message: over }).catch(String)).toContain("552 5.3.4");
});

describe.skipIf(postfix.missing !== null)(`Postfix as a satellite (${postfix.missing ?? "runs"})`, () => {
  test("logs in and hands on what it was given, to fifty recipients", async () => {
    const port = service.app.ports.submission ?? 0;
    const satellite = await startPostfix({
      relayhost: `[127.0.0.1]:${port}`,
      mydestination: "",
      smtp_tls_security_level: "encrypt",
      mynetworks: "127.0.0.0/8",
      smtpd_relay_restrictions: "permit_mynetworks, reject",
      smtp_sasl_auth_enable: "yes",
      smtp_sasl_security_options: "noanonymous",
      smtp_sasl_password_maps: `inline:{{[127.0.0.1]:${port}=shop:${service.projectKey}}}`,
    });
    try {
      const subject = unique("satellite");
      const sent = message(subject, BODIES["octets beyond ASCII"] ?? "");
      const to = Array.from({ length: 50 }, (_, at) => `r${at}@to.test`);
      await NODEMAILER.send({ port: satellite.port, folder, from: FROM, to, message: sent, tls: false });
      for (let looks = 0; (await listed(subject)) === 0; looks++) {
        if (looks === 600) throw new Error(`nothing came: ${satellite.log()}`);
        await Bun.sleep(50);
      }
      const { raw, record, isEncoded } = await kept(subject);
      expect(record.recipients).toHaveLength(50);
      expect(isEncoded).toBe(true);
      expect(raw.toString("latin1")).toStartWith("Received: ");
      expect(raw.subarray(raw.indexOf("From: ")).equals(sent)).toBe(true);
    } finally {
      await satellite.stop();
    }
  });
});

async function listed(subject: string): Promise<number> {
  return (await service.call("GET", `/v1/emails?q=${encodeURIComponent(subject)}`)).body.data.length;
}
