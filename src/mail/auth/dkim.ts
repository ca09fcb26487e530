import { createHash, createPrivateKey, generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { normalizeDomain } from "../../core/addresses.ts";
import { fieldsOf, findHeaderEnd, type RawField } from "../reading/raw-headers.ts";
import { relaxedBody } from "./canonical-body.ts";

/** RFC 8301 §3.2: signers should use at least 2048 bits. Longer keys do not fit the DNS answers of many providers. */
const KEY_BITS = 2048;

/**
 * Fields that are signed and named once more than the mail has them (RFC 6376 §8.15). Another one, added later, breaks the signature:
 * a second Subject or Content-Type in front, which many readers would show, or a first Reply-To or List-Unsubscribe.
 * A mailing list that adds fields of its own signs the mail again.
 */
const SEALED_FIELDS = [
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
  "list-id",
  "list-help",
  "list-subscribe",
  "list-post",
  "list-owner",
  "list-archive",
  "list-unsubscribe",
  "list-unsubscribe-post",
] as const;

/** Fields that are signed if the mail has them. Feedback-ID: Gmail reads it from mail whose signature covers it. */
const OPEN_FIELDS = ["feedback-id"] as const;

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
  /** Milliseconds since the epoch, for `t=`. Without it the signature has no `t=`. */
  signedAt?: number;
}

/** Generates a new RSA key pair off the main thread. */
export async function generateDkimKey(): Promise<DkimKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("rsa", {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  return { privateKeyPem: privateKey, publicKeyBase64: publicKey.toString("base64") };
}

/** Returns the key in a PEM text. Throws if it has none. */
export function dkimPrivateKey(pem: string): KeyObject {
  return createPrivateKey(pem);
}

/** Returns the TXT record that publishes a key (RFC 6376 §3.6.1). */
export function dkimRecord(publicKeyBase64: string): string {
  return `v=DKIM1; k=rsa; p=${publicKeyBase64}`;
}

/**
 * Returns the message with a DKIM-Signature in front: rsa-sha256, relaxed/relaxed. The RSA operation runs on the thread pool.
 * Throws if the message has no From, or the domain or selector is no name.
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
  const names = [...fields.map(({ name }) => name), ...SEALED_FIELDS];
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

/** Returns all fields that are signed, instances of one name from the last to the first (RFC 6376 §5.4.2). */
function signedFields(present: readonly RawField[]): RawField[] {
  const fields = [...SEALED_FIELDS, ...OPEN_FIELDS].flatMap((name) =>
    present.filter((field) => field.name === name).reverse(),
  );
  if (fields[0]?.name !== "from") throw new Error("a message without From cannot be signed (RFC 6376 §5.4)");
  return fields;
}

/** Joins names by colons, in lines that begin with " h=" or two spaces (RFC 6376 §3.5 allows folding white space). */
function foldedNames(names: readonly string[]): string {
  let out = "";
  let column = " h=".length;
  for (const [at, name] of names.entries()) {
    // A colon follows, or the semicolon that ends the tag.
    if (column + name.length + 1 > MAX_LINE_CHARS) {
      out += "\r\n  ";
      column = 2;
    }
    out += at < names.length - 1 ? `${name}:` : name;
    column += name.length + 1;
  }
  return out;
}

/** White space except single spaces: there are hundreds of those, and replacing each takes time. */
const SPACE = /[ \t]{2,}|\t/g;

/** Returns a field by relaxed canonicalization (RFC 6376 §3.4.2), without the line end. */
export function relaxedField({ name, line }: RawField): string {
  const value = line
    .slice(line.indexOf(":") + 1)
    .replace(/\r\n/g, "")
    .replace(SPACE, " ")
    // Not trim(): it would take the octet 0xA0 of a UTF-8 character for a space.
    .replace(/^ | $/g, "");
  return `${name}:${value}`;
}
