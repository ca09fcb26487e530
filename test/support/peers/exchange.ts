import { Database } from "bun:sqlite";
import { join } from "node:path";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { dkimRecord } from "../../../src/mail/auth/dkim.ts";
import { type ApiAnswer, startService, type TestService, verifiedDomain } from "../service.ts";
import { eventually, type Peer, PEER_DOMAIN, PEER_MX } from "./peer.ts";

/** The domain that the service sends from in these tests. */
export const SENDER_DOMAIN = "sender.test";

/** A valid send without sender and recipient. */
export interface Content {
  subject: string;
  text?: string;
  html?: string;
  headers?: Record<string, string>;
  attachments?: { filename: string; contentType?: string; content: string }[];
}

/** Prose of that many bytes, in lines. */
export function prose(octets: number): string {
  const line = "The quick brown fox jumps over the lazy dog, again and again.\n";
  return line.repeat(Math.ceil(octets / line.length)).slice(0, octets);
}

/** Messages of every kind that a server might damage on the way. */
export const VARIED: Readonly<Record<string, Content>> = {
  "plain ASCII": { subject: "Hello", text: "Hello,\n\nhow are you?\n" },
  "UTF-8 in the header fields": {
    subject: "Grüße aus Łódź — 你好, мир! 🎉 ".repeat(6),
    text: "Zażółć gęślą jaźń\n",
    headers: { "X-Campaign": "Überraschung für Jürgen", "X-Long": "word ".repeat(120).trim() },
  },
  "dots where lines begin": { subject: "Dots", text: ".\n..\n.hidden\n...\n\n.\n.\r\n.end\n" },
  "lines of 998 octets and more": {
    subject: "Long lines",
    text: `${"a".repeat(998)}\n${"b".repeat(997)}\n.${"c".repeat(2500)}\n`,
    html: `<p>${"d".repeat(5000)}</p>`,
  },
  "a blank text and an attachment": {
    subject: "Nothing",
    text: " ",
    attachments: [{ filename: "a.txt", contentType: "text/plain", content: btoa("a") }],
  },
  "spaces and empty lines at the end": { subject: "Spaces", text: "a  \t \n \n\t\n  b \n\n\n\n" },
  "html, text and attachments": {
    subject: "Attachments",
    text: "See the attachments.\n",
    html: '<p>See the <a href="https://example.com/?a=1&amp;b=2">attachments</a>, größer.</p>',
    attachments: [
      { filename: "every octet.bin", content: everyOctet().toString("base64") },
      { filename: "Übersicht – 表.txt", contentType: "text/plain", content: btoa("a\r\nb\nc") },
    ],
  },
  "one megabyte": {
    subject: "Large",
    text: prose(200_000),
    attachments: [{ filename: "large.bin", content: Buffer.alloc(600_000, "large").toString("base64") }],
  },
};

function everyOctet(): Buffer {
  return Buffer.from(Array.from({ length: 4096 }, (_, at) => at % 256));
}

export interface Sending {
  /**
   * Sends to the address and returns the message's id. Tracking is off, so that all recipients get the same bytes.
   */
  send(to: string, content?: Content): Promise<string>;
  /** Waits until the message has that state. Fails after some seconds, with its actual state. */
  ended(id: string, status: string): Promise<ApiAnswer["body"]>;
  /** Returns the message as the service sends it, from its From field on. */
  signedPart(id: string): Promise<Buffer>;
  /** Returns mailauth's verdict on the first DKIM signature. */
  dkim(raw: Buffer): Promise<string | undefined>;
}

/** A service whose MX host for the peers' domain is the peer. */
export async function serviceBesideMx(peer: Peer): Promise<TestService> {
  const service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(peer.port) });
  service.dns.add(
    { name: PEER_DOMAIN, type: "MX", data: { preference: 10, exchange: PEER_MX } },
    { name: PEER_MX, type: "A", data: peer.ip },
  );
  return service;
}

/** Makes the service ready to send from its domain. */
export async function readyToSend(service: TestService): Promise<Sending> {
  await verifiedDomain(service, SENDER_DOMAIN);
  const record = publishedKey(service);
  return {
    async send(to, content = { subject: "Hello", text: "Hello\n" }) {
      const { status, body } = await service.call("POST", "/v1/emails", {
        from: { email: `news@${SENDER_DOMAIN}`, name: 'Ünïcode & Söhne, "Ltd."' },
        to: [{ email: to, name: "Recipient" }],
        tracking: { opens: false, clicks: false },
        ...content,
      });
      if (status !== 202) throw new Error(`not accepted: ${JSON.stringify(body)}`);
      return body.id;
    },
    ended(id, status) {
      let seen: unknown;
      return eventually(
        async () => {
          const { body } = await service.call("GET", `/v1/emails/${id}`);
          seen = body.recipients;
          return body.status === status ? body : null;
        },
        () => `not ${status}: ${JSON.stringify(seen)}`,
      );
    },
    async signedPart(id) {
      const response = await fetch(`${service.url}/v1/emails/${id}/raw`, {
        headers: { authorization: `Bearer ${service.projectKey}` },
      });
      return fromFrom(Buffer.from(await response.arrayBuffer()));
    },
    async dkim(raw) {
      const resolver = async (): Promise<string[][]> => [[record]];
      return (await dkimVerify(raw, { resolver })).results[0]?.status.result;
    },
  };
}

/** The DKIM record that the domain's CNAME points to. */
function publishedKey(service: TestService): string {
  using database = new Database(join(service.folder, "postrider.db"), { readonly: true });
  const row = database
    .query<{ public_key: string }, [string]>(
      "SELECT public_key FROM dkim_keys JOIN domains ON domains.id = domain_id WHERE domains.name = ?",
    )
    .get(SENDER_DOMAIN);
  return dkimRecord(row?.public_key ?? "");
}

/** Returns a message from its From field on. Relays add their fields before it. */
export function fromFrom(raw: Buffer): Buffer {
  const at = raw.indexOf("\r\nFrom: ");
  if (at < 0) throw new Error(`no From field in ${raw.subarray(0, 500).toString("latin1")}`);
  return raw.subarray(at + 2);
}
