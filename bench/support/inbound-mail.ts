/** The messages that smtp-source sends for `bench/inbound.ts`, and the DNS records of their sender. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { dkimPrivateKey, dkimRecord, generateDkimKey, signDkim } from "../../src/mail/auth/dkim.ts";
import { type DnsRecord, startDns, type TestDns } from "../../test/support/dns.ts";
import { startChild } from "./children.ts";

const SMTP_SOURCE = "/usr/sbin/smtp-source";
const SENDER_DOMAIN = "elsewhere.example";
export const SENDER = `writer@${SENDER_DOMAIN}`;
const SELECTOR = "bench";
/** Characters of a string in a TXT record (RFC 1035 §3.3). */
const TXT_CHARS = /.{1,255}/g;
/** Characters of a line, as smtp-source sends them. */
const LINE = `${"X".repeat(78)}\r\n`;
/** A line of base64 of the length that RFC 2045 §6.8 allows. */
const BASE64_LINE = `${"b".repeat(76)}\r\n`;

/** Flags of smtp-source that select the message. */
export type MailFlags = readonly string[];

/** Kind of a message's body: lines of text, or an attachment. */
export type Body = "text" | "attachment";

export interface Sender {
  /** The sender's DNS records: SPF and DMARC, and the DKIM key if messages are signed. */
  dns: TestDns;
  /** These records, for other name servers. */
  records: readonly DnsRecord[];
  /** Returns a message whose body has this many bytes. It is unsigned unless the sender signs. */
  mail: (body: Body, octets: number) => Promise<MailFlags>;
}

/** Makes a sender whose messages pass SPF and DMARC, and DKIM if it signs. Files are put into the folder. */
export async function openSender(folder: string, recipient: string, signs: boolean): Promise<Sender> {
  const records: DnsRecord[] = [
    txt(SENDER_DOMAIN, "v=spf1 ip4:127.0.0.1 -all"),
    txt(`_dmarc.${SENDER_DOMAIN}`, "v=DMARC1; p=reject"),
  ];
  const sign = signs ? await openSigner(records) : async (raw: Buffer) => raw;
  const dns = await startDns(...records);
  const envelope = ["-f", SENDER, "-t", recipient, "-M", SENDER_DOMAIN];
  return {
    dns,
    records,
    async mail(body, octets) {
      if (body === "text" && !signs) return [...envelope, "-S", "Measured", "-l", String(octets)];
      const raw = Buffer.from(`${HEADER}To: <${recipient}>\r\n${BODIES[body](octets)}`);
      const signed = await sign(raw);
      const file = join(folder, `${body}-${octets}`);
      // smtp-source ends lines itself.
      writeFileSync(file, signed.toString("latin1").replaceAll("\r\n", "\n"));
      return [...envelope, "-F", file];
    },
  };
}

/** Adds the record of a new key, and signs with the key. */
async function openSigner(records: DnsRecord[]): Promise<(raw: Buffer) => Promise<Buffer>> {
  const key = await generateDkimKey();
  records.push(txt(`${SELECTOR}._domainkey.${SENDER_DOMAIN}`, dkimRecord(key.publicKeyBase64)));
  const privateKey = dkimPrivateKey(key.privateKeyPem);
  return (raw) => signDkim({ raw, domain: SENDER_DOMAIN, keys: [{ selector: SELECTOR, privateKey }] });
}

function txt(name: string, value: string): DnsRecord {
  return { name, type: "TXT", data: value.match(TXT_CHARS) };
}

/** Has no Message-ID: smtp-source sends one file each time, and a repeated Message-ID would be stored once. */
const HEADER = `From: <${SENDER}>\r\nDate: Sat, 21 Nov 2026 09:00:00 +0000\r\nSubject: Measured\r\n`;

/** Returns the rest of a message by its body: fields, the empty line, and this many bytes. */
const BODIES: Readonly<Record<Body, (octets: number) => string>> = {
  text: (octets) => `\r\n${LINE.repeat(Math.ceil(octets / LINE.length))}`,
  attachment: (octets) =>
    [
      'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="part"\r\n\r\n',
      "--part\r\nContent-Type: text/plain\r\n\r\nSee the attachment.\r\n",
      "--part\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n",
      'Content-Disposition: attachment; filename="measured.bin"\r\n\r\n',
      `${BASE64_LINE.repeat(Math.ceil(octets / BASE64_LINE.length))}--part--\r\n`,
    ].join(""),
};

/** Ways in which smtp-source sends: `kept` sessions bring one message after another. */
export interface Load {
  port: number;
  sessions: number;
  mails: number;
  kept: boolean;
  mail: MailFlags;
}

/** Sends messages. Resolves with the wall time in seconds. Throws if one is refused. */
export async function send(folder: string, load: Load): Promise<number> {
  const begin = performance.now();
  const counts = ["-s", load.sessions, "-m", load.mails].map(String);
  const child = await startChild(
    [SMTP_SOURCE, ...counts, ...(load.kept ? ["-d"] : []), ...load.mail, `127.0.0.1:${load.port}`],
    { log: join(folder, `source-${Bun.randomUUIDv7()}`) },
  );
  await child.finished();
  return (performance.now() - begin) / 1000;
}
