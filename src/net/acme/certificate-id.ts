import { type DerValue, readDer, readDerParts, TAG } from "../../core/crypto/der.ts";

/** 2.5.29.35 (RFC 5280 §4.2.1.1). */
const AUTHORITY_KEY_IDENTIFIER = "551d23";
const EXTENSIONS_FIELD = 0xa3;
const KEY_IDENTIFIER_FIELD = 0x80;

/**
 * Returns the name of a certificate in questions about its renewal: its issuer's key and its serial number (RFC 9773
 * §4.1). Returns null if it does not name the key of its issuer.
 * @param certificate in DER
 */
export function certificateId(certificate: Buffer): string | null {
  const [body] = readDerParts(readDer(certificate));
  const fields = body === undefined ? [] : readDerParts(body);
  const serial = fields.find(({ tag }) => tag === TAG.integer);
  const issuer = issuerKey(fields.find(({ tag }) => tag === EXTENSIONS_FIELD));
  if (serial === undefined || issuer === null) return null;
  return `${issuer.toString("base64url")}.${serial.content.toString("base64url")}`;
}

function issuerKey(field: DerValue | undefined): Buffer | null {
  const [list] = field === undefined ? [] : readDerParts(field);
  for (const extension of list === undefined ? [] : readDerParts(list)) {
    const [name, ...values] = readDerParts(extension);
    if (name?.content.toString("hex") !== AUTHORITY_KEY_IDENTIFIER) continue;
    const value = values.find(({ tag }) => tag === TAG.octetString);
    const parts = value === undefined ? [] : readDerParts(readDer(value.content));
    return parts.find(({ tag }) => tag === KEY_IDENTIFIER_FIELD)?.content ?? null;
  }
  return null;
}
