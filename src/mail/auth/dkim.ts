import { createHash, createPrivateKey, generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { normalizeDomain } from "../../core/addresses.ts";
import { type MakeRsaKey, newRsaKey } from "../../core/crypto/rsa-key.ts";
import type { DkimAlgorithm } from "../../core/domains/dkim-keys.ts";
import { fieldsOf, findHeaderEnd, type RawField } from "../reading/raw-headers.ts";
import { canonicalPieces } from "./canonical-body.ts";

/** Octets of an Ed25519 key. They are the last ones of its SubjectPublicKeyInfo (RFC 8410 §4). */
const ED25519_OCTETS = 32;

/**
 * Fields that are signed and named once more than the mail has them, even if it has none (RFC 6376 §8.15). Another one, added later, breaks
 * the signature: a second Subject or Content-Type in front, which many readers would show.
 */
const ALWAYS_SEALED = [
  "from",
  "to",
  "cc",
  "subject",
  "date",
  "message-id",
  "mime-version",
  "content-type",
] as const;

/**
 * Fields that are sealed only if the mail has them. A mailing list may add the others, and a gateway a transfer encoding, without
 * breaking the signature.
 */
const SEALED_IF_PRESENT = [
  "reply-to",
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
  "cfbl-address",
  "cfbl-feedback-id",
] as const;

/**
 * Fields that are signed if the mail has them. Gmail reads Feedback-ID from mail whose signature covers it, and relays add
 * one of theirs.
 */
const OPEN_FIELDS = ["feedback-id"] as const;

/** RFC 5322 §2.1.1: a line should have no more than 78 characters without its CRLF. */
const MAX_LINE_CHARS = 78;

export interface DkimKey {
  /** PKCS #8. */
  privateKeyPem: string;
  /** The value of `p=` in base64: SubjectPublicKeyInfo for RSA, the bare key for Ed25519 (RFC 8463 §4). */
  publicKeyBase64: string;
}

/** A key of a domain, to sign with. */
export interface DkimSigner {
  /** The `d=` domain, A-labels. If left out, that of the signing. */
  domain?: string;
  selector: string;
  /** Made once by `dkimPrivateKey` and kept: reading a PEM takes as long as signing. */
  privateKey: KeyObject;
}

export interface DkimSigning {
  /** A message with CRLF line ends. */
  raw: Buffer;
  /** The `d=` domain of keys that name none, A-labels. */
  domain: string;
  /** Each makes a separate signature, the first on top. */
  keys: readonly DkimSigner[];
  /** Milliseconds since the epoch, for `t=`. Without it the signature has no `t=`. */
  signedAt?: number;
}

const ENCODINGS = {
  publicKeyEncoding: { type: "spki", format: "der" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
} as const;

/** Generates a new key pair off the main thread. */
export async function generateDkimKey(
  algorithm: DkimAlgorithm = "rsa",
  makeRsaKey: MakeRsaKey = newRsaKey,
): Promise<DkimKey> {
  if (algorithm === "ed25519") {
    const { publicKey, privateKey } = await promisify(generateKeyPair)("ed25519", ENCODINGS);
    return {
      privateKeyPem: privateKey,
      publicKeyBase64: publicKey.toString("base64", publicKey.length - ED25519_OCTETS),
    };
  }
  const { publicKey, privateKey } = await makeRsaKey();
  return {
    privateKeyPem: privateKey.export(ENCODINGS.privateKeyEncoding).toString(),
    publicKeyBase64: publicKey.export(ENCODINGS.publicKeyEncoding).toString("base64"),
  };
}

/** Returns the key in a PEM text. Throws if it has none. */
export function dkimPrivateKey(pem: string): KeyObject {
  return createPrivateKey(pem);
}

/** Returns the TXT record that publishes a key (RFC 6376 §3.6.1). */
export function dkimRecord(publicKeyBase64: string, algorithm: DkimAlgorithm = "rsa"): string {
  return `v=DKIM1; k=${algorithm}; p=${publicKeyBase64}`;
}

/**
 * Returns the message with a DKIM-Signature of each key in front: sha256, relaxed/relaxed. They share the body hash, and none
 * covers another.
 * Throws if the message has no From, or the domain or a selector is no name.
 */
export async function signDkim({ raw, domain: own, keys, signedAt }: DkimSigning): Promise<Buffer> {
  const { header, body } = findHeaderEnd(raw);
  const present = byName(fieldsOf(raw.toString("latin1", 0, header)));
  const fields = SIGNED.flatMap((name) => present.get(name) ?? []);
  if (fields[0]?.name !== "from") throw new Error("a message without From cannot be signed (RFC 6376 §5.4)");
  const hash = createHash("sha256");
  for (const piece of canonicalPieces("relaxed", raw.subarray(body))) hash.update(piece);
  const bodyHash = hash.digest("base64");
  const covered = fields.map(relaxedField).join("\r\n");
  const time = signedAt === undefined ? "" : ` t=${Math.floor(signedAt / 1000)};`;
  const sealed = [...ALWAYS_SEALED, ...SEALED_IF_PRESENT.filter((name) => present.has(name))];
  const names = foldedNames([...fields.map(({ name }) => name), ...sealed]);
  const signatures = keys.map(async ({ domain = own, selector, privateKey }) => {
    if (normalizeDomain(domain) !== domain || normalizeDomain(`${selector}.${domain}`) === null)
      throw new Error("a DKIM signature needs a domain in A-labels and a selector");
    const isRsa = privateKey.asymmetricKeyType === "rsa";
    const unsigned = [
      `DKIM-Signature: v=1; a=${isRsa ? "rsa" : "ed25519"}-sha256; c=relaxed/relaxed;`,
      ` d=${domain};`,
      ` s=${selector};${time} bh=${bodyHash};`,
      ` h=${names};`,
      " b=",
    ].join("\r\n");
    const own = relaxedField({ name: "dkim-signature", line: unsigned });
    const made = await signature(Buffer.from(`${covered}\r\n${own}`, "latin1"), privateKey, isRsa);
    return `${unsigned}${made.toString("base64").replace(/.{72}(?=.)/g, "$&\r\n  ")}\r\n`;
  });
  return Buffer.concat([Buffer.from((await Promise.all(signatures)).join(""), "latin1"), raw]);
}

/**
 * Signs the data with RSA on the thread pool, or their hash with Ed25519 (RFC 8463 §3). The latter takes less than handing it to
 * a thread.
 */
function signature(data: Buffer, key: KeyObject, isRsa: boolean): Promise<Buffer> | Buffer {
  if (!isRsa) return sign(null, createHash("sha256").update(data).digest(), key);
  return new Promise((resolve, reject) => {
    sign("sha256", data, key, (error, made) => (error ? reject(error) : resolve(made)));
  });
}

const SIGNED: readonly string[] = [...ALWAYS_SEALED, ...SEALED_IF_PRESENT, ...OPEN_FIELDS];

/** Returns the fields of each name from the last to the first, the order in which they are signed (RFC 6376 §5.4.2). */
function byName(fields: readonly RawField[]): Map<string, RawField[]> {
  const named = new Map<string, RawField[]>();
  for (const field of fields) {
    const others = named.get(field.name);
    if (others === undefined) named.set(field.name, [field]);
    else others.unshift(field);
  }
  return named;
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
