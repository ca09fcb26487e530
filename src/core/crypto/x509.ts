import { der, TAG } from "./der.ts";

const PEM_LINE_CHARS = 64;

/** sha256WithRSAEncryption, 1.2.840.113549.1.1.11 (RFC 8017 App. A.2.4). */
const SHA256_WITH_RSA = "2a864886f70d01010b";
/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2 (RFC 5758 §3.2). */
const SHA256_WITH_ECDSA = "2a8648ce3d040302";
/** 2.5.29.17 (RFC 5280 §4.2.1.6). */
const SUBJECT_ALT_NAME = "551d11";
/** The implicit tag of a dNSName. */
const DNS_NAME = 0x82;

/** Encodes an object identifier, whose octets are given in hex. */
export function identifier(hex: string): Buffer {
  return der(TAG.objectIdentifier, Buffer.from(hex, "hex"));
}

/** Encodes the algorithm of an RSA signature over SHA-256. */
export function rsaSignatureAlgorithm(): Buffer {
  return der(TAG.sequence, identifier(SHA256_WITH_RSA), der(TAG.null));
}

/** Encodes the algorithm of an ECDSA signature over SHA-256, which has no parameters. */
export function ecdsaSignatureAlgorithm(): Buffer {
  return der(TAG.sequence, identifier(SHA256_WITH_ECDSA));
}

/** Encodes the extension that names the hosts of a certificate. */
export function subjectAltName(names: readonly string[]): Buffer {
  const hosts = names.map((name) => der(DNS_NAME, Buffer.from(name, "latin1")));
  const value = der(TAG.octetString, der(TAG.sequence, ...hosts));
  return der(TAG.sequence, identifier(SUBJECT_ALT_NAME), value);
}

/** Wraps a body and its signature, the form of certificates and of requests for them (RFC 5280 §4.1, RFC 2986 §4). */
export function signedBody(body: Buffer, signature: Buffer, algorithm: Buffer): Buffer {
  return der(TAG.sequence, body, algorithm, der(TAG.bitString, Buffer.from([0]), signature));
}

/** Encodes octets as PEM (RFC 7468 §2). */
export function pem(label: string, octets: Buffer): string {
  const lines = octets.toString("base64").match(new RegExp(`.{1,${PEM_LINE_CHARS}}`, "g")) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
