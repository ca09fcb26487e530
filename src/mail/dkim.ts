import { createHash, createPrivateKey, generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { normalizeDomain } from "../core/addresses.ts";
import { fieldsOf, findHeaderEnd, type RawField } from "./reading/raw-headers.ts";
import { withRelaxedBody } from "./relaxed-body.ts";

/** RFC 8301 §3.2: signers should use at least 2048 bits; longer keys do not fit the DNS answers of many. */
const KEY_BITS = 2048;

/** Fields that a mail has once (RFC 5322 §3.6, RFC 2045 §3), signed when present (RFC 6376 §5.4.1). */
const SINGLE_FIELDS = [
  "from",
  "to",
  "cc",
  "subject",
  "date",
  "message-id",
  "reply-to",
  "mime-version",
  "content-type",
  "content-transfer-encoding",
  "in-reply-to",
  "references",
] as const;

/**
 * Further fields signed when present; a mailing list may add its own. List-Unsubscribe fields: RFC 8058 §4. Feedback-ID:
 * Gmail asks for a signature that comes behind it.
 */
const LIST_FIELDS = [
  "list-id",
  "list-help",
  "list-subscribe",
  "list-post",
  "list-owner",
  "list-archive",
  "list-unsubscribe",
  "list-unsubscribe-post",
  "feedback-id",
] as const;

/** RFC 5322 §2.1.1: a line should have no more than 78 characters without its CRLF. */
const MAX_LINE_CHARS = 78;

export interface DkimKey {
  /** PKCS #8. */
  privateKeyPem: string;
  /** The value of `p=`: SubjectPublicKeyInfo in base64. */
  publicKeyBase64: string;
}

export interface DkimSigning {
  /** A message with CRLF line ends. */
  raw: Buffer;
  /** The `d=` domain, A-labels. */
  domain: string;
  selector: string;
  /** Made once by `dkimPrivateKey` and kept: reading a PEM takes as long as signing. */
  privateKey: KeyObject;
  /** Milliseconds since the epoch, for `t=`; left out when not given. */
  signedAt?: number;
}

/** A new RSA key pair, generated off the main thread. */
export async function generateDkimKey(): Promise<DkimKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("rsa", {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  return { privateKeyPem: privateKey, publicKeyBase64: publicKey.toString("base64") };
}

/** The key behind a PEM text. Throws where it is none. */
export function dkimPrivateKey(pem: string): KeyObject {
  return createPrivateKey(pem);
}

/** The TXT record that publishes a key (RFC 6376 §3.6.1). */
export function dkimRecord(publicKeyBase64: string): string {
  return `v=DKIM1; k=rsa; p=${publicKeyBase64}`;
}

/**
 * The message with a DKIM-Signature in front: rsa-sha256, relaxed/relaxed. The RSA operation runs on the thread pool.
 * Fields that a mail has once are named once more in `h=` (RFC 6376 §8.15): a second From, Subject or Content-Type put in
 * front later, which many readers would show, breaks the signature.
 * Throws where the message has no From, or the domain or selector is no name.
 */
export async function signDkim(signing: DkimSigning): Promise<Buffer> {
  const { raw, domain, selector, privateKey, signedAt } = signing;
  if (normalizeDomain(domain) !== domain || normalizeDomain(`${selector}.${domain}`) === null)
    throw new Error("a DKIM signature needs a domain in A-labels and a selector");
  const { header, body } = findHeaderEnd(raw);
  const fields = signedFields(fieldsOf(raw.toString("latin1", 0, header)));
  const bodyHash = createHash("sha256")
    .update(relaxedBody(raw.subarray(body)))
    .digest("base64");
  const present = fields.map(({ name }) => name);
  const names = [...present, ...SINGLE_FIELDS.filter((name) => present.includes(name))];
  const unsigned = [
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;",
    ` d=${domain};`,
    ` s=${selector};${signedAt === undefined ? "" : ` t=${Math.floor(signedAt / 1000)};`} bh=${bodyHash};`,
    ` h=${foldedNames(names)};`,
    " b=",
  ].join("\r\n");
  const covered = [...fields, { name: "dkim-signature", line: unsigned }].map(relaxedField).join("\r\n");
  const signature = await signRsaSha256(Buffer.from(covered, "latin1"), privateKey);
  const folded = signature.toString("base64").replace(/.{72}(?=.)/g, "$&\r\n  ");
  return Buffer.concat([Buffer.from(`${unsigned}${folded}\r\n`, "latin1"), raw]);
}

function signRsaSha256(data: Buffer, key: KeyObject): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    sign("sha256", data, key, (error, signature) => (error ? reject(error) : resolve(signature)));
  });
}

/** All fields of the signed names; instances of one name from the last to the first (RFC 6376 §5.4.2). */
function signedFields(present: readonly RawField[]): RawField[] {
  const fields = [...SINGLE_FIELDS, ...LIST_FIELDS].flatMap((name) =>
    present.filter((field) => field.name === name).reverse(),
  );
  if (fields[0]?.name !== "from") throw new Error("a message without From cannot be signed (RFC 6376 §5.4)");
  return fields;
}

/** Names joined by colons, in lines that begin " h=" and two spaces (folding white space is allowed, RFC 6376 §3.5). */
function foldedNames(names: readonly string[]): string {
  let out = "";
  let column = " h=".length;
  for (const [at, name] of names.entries()) {
    // Behind it stands a colon, or the semicolon that ends the tag.
    if (column + name.length + 1 > MAX_LINE_CHARS) {
      out += "\r\n  ";
      column = 2;
    }
    out += at < names.length - 1 ? `${name}:` : name;
    column += name.length + 1;
  }
  return out;
}

/** White space that is not a single space already: of those there are hundreds, and replacing each takes its time. */
const SPACE = /[ \t]{2,}|\t/g;

/** Relaxed header canonicalization (RFC 6376 §3.4.2), without the line end. */
export function relaxedField({ name, line }: RawField): string {
  const value = line
    .slice(line.indexOf(":") + 1)
    .replace(/\r\n/g, "")
    .replace(SPACE, " ")
    // Not trim(): it would take the octet 0xA0 of a UTF-8 character for a space.
    .replace(/^ | $/g, "");
  return `${name}:${value}`;
}

/** Relaxed body canonicalization (RFC 6376 §3.4.4). Each step is linear in the length, whatever the spaces. */
export function relaxedBody(body: Uint8Array): Buffer {
  const octets = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // Most bodies have nothing to be replaced, and to look for it among octets takes a tenth of the time.
  const lines = UNRELAXED.some((space) => octets.includes(space)) ? withRelaxedBody(octets, 0) : octets;
  let end = lines[lines.length - 1] === SP ? lines.length - 1 : lines.length;
  while (end >= 2 && lines[end - 1] === LF && lines[end - 2] === CR) end -= 2;
  if (end === 0) return Buffer.alloc(0);
  return lines[end] === CR ? lines.subarray(0, end + 2) : Buffer.concat([lines.subarray(0, end), CRLF]);
}

/** White space that does not stay as it is. */
const UNRELAXED = ["  ", "\t", " \r\n"] as const;
const SP = 0x20;
const CR = 0x0d;
const LF = 0x0a;
const CRLF = Buffer.from("\r\n");
