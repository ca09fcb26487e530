import { createHash, createHmac, createPrivateKey, generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";

/** The public half of an account key (RFC 7517), with its members in the order that the thumbprint needs (RFC 7638 §3.2). */
export interface Jwk {
  crv: string;
  kty: string;
  x: string;
  y: string;
}

/** A key of an account, and the account's URL once the CA has given one. */
export interface AccountKey {
  privateKey: KeyObject;
  jwk: Jwk;
  /** null: requests carry the key itself (RFC 8555 §6.2). */
  url: string | null;
}

/** Makes an account key in PEM: P-256, which every CA takes (RFC 8555 §6.2 requires ES256). */
export async function newAccountKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Reads an account key in PEM. */
export function readAccountKey(pem: string, url: string | null): AccountKey {
  const privateKey = createPrivateKey(pem);
  const { crv = "", kty = "", x = "", y = "" } = privateKey.export({ format: "jwk" });
  return { privateKey, jwk: { crv, kty, x, y }, url };
}

/** Signs a request (RFC 8555 §6.2). @param payload null for POST-as-GET (§6.3) */
export function signRequest(account: AccountKey, url: string, nonce: string, payload: object | null): string {
  const who = account.url === null ? { jwk: account.jwk } : { kid: account.url };
  const head = encoded(JSON.stringify({ alg: "ES256", ...who, nonce, url }));
  const body = payload === null ? "" : encoded(JSON.stringify(payload));
  // JWS wants both numbers of the signature one after the other, not in DER (RFC 7518 §3.4).
  const key = { key: account.privateKey, dsaEncoding: "ieee-p1363" as const };
  const signature = sign("sha256", Buffer.from(`${head}.${body}`), key).toString("base64url");
  return JSON.stringify({ protected: head, payload: body, signature });
}

/** A key that a CA gives to a customer, to bind accounts to (RFC 8555 §7.3.4). */
export interface ExternalAccount {
  kid: string;
  /** base64url. */
  hmacKey: string;
}

/** Makes the binding of an account key to an external account. */
export function bindExternal({ kid, hmacKey }: ExternalAccount, jwk: Jwk, url: string): object {
  const head = encoded(JSON.stringify({ alg: "HS256", kid, url }));
  const body = encoded(JSON.stringify(jwk));
  const hmac = createHmac("sha256", Buffer.from(hmacKey, "base64url")).update(`${head}.${body}`);
  return { protected: head, payload: body, signature: hmac.digest("base64url") };
}

/** Returns the value of the TXT record that answers a dns-01 challenge (RFC 8555 §8.4). */
export function challengeRecord(token: string, jwk: Jwk): string {
  const thumbprint = sha256(JSON.stringify(jwk));
  return sha256(`${token}.${thumbprint}`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64url");
}
