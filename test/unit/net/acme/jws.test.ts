import { expect, test } from "bun:test";
import { createHmac, createPublicKey, verify } from "node:crypto";
import {
  bindExternal,
  challengeRecord,
  type Jwk,
  newAccountKey,
  readAccountKey,
  signRequest,
} from "../../../../src/net/acme/jws.ts";

const URL = "https://ca.test/order";

function parts(text: string) {
  const { protected: head, payload, signature } = JSON.parse(text);
  return { head: JSON.parse(decoded(head)), payload, signed: `${head}.${payload}`, signature };
}

function decoded(text: string): string {
  return Buffer.from(text, "base64url").toString();
}

function isSignedBy(jwk: Jwk, signed: string, signature: string): boolean {
  const key = createPublicKey({ key: { ...jwk }, format: "jwk" });
  const form = { key, dsaEncoding: "ieee-p1363" as const };
  return verify("sha256", Buffer.from(signed), form, Buffer.from(signature, "base64url"));
}

test("a request carries the key until the account has a URL, then the URL", async () => {
  const pem = await newAccountKey();
  const fresh = readAccountKey(pem, null);
  const first = parts(signRequest(fresh, URL, "n1", { a: 1 }));
  expect(first.head).toEqual({ alg: "ES256", jwk: fresh.jwk, nonce: "n1", url: URL });
  expect(decoded(first.payload)).toBe('{"a":1}');
  expect(isSignedBy(fresh.jwk, first.signed, first.signature)).toBe(true);
  const second = parts(signRequest(readAccountKey(pem, "https://ca.test/1"), URL, "n2", null));
  expect(second.head).toEqual({ alg: "ES256", kid: "https://ca.test/1", nonce: "n2", url: URL });
  // POST-as-GET: RFC 8555 §6.3.
  expect(second.payload).toBe("");
  expect(isSignedBy(fresh.jwk, second.signed, second.signature)).toBe(true);
});

test("a key names only its public members", async () => {
  const { jwk } = readAccountKey(await newAccountKey(), null);
  expect(Object.keys(jwk)).toEqual(["crv", "kty", "x", "y"]);
});

test("the answer to a challenge is the hash of the token and the thumbprint of RFC 7638", () => {
  const jwk = { crv: "P-256", kty: "EC", x: "x", y: "y" };
  const thumbprint = new Bun.CryptoHasher("sha256").update('{"crv":"P-256","kty":"EC","x":"x","y":"y"}');
  const whole = `token.${thumbprint.digest("base64url")}`;
  expect(challengeRecord("token", jwk)).toBe(
    new Bun.CryptoHasher("sha256").update(whole).digest("base64url"),
  );
});

test("an account is bound to the external one with the HMAC of its public key", () => {
  const jwk = { crv: "P-256", kty: "EC", x: "x", y: "y" };
  const hmacKey = Buffer.alloc(32, 1).toString("base64url");
  const bound = parts(JSON.stringify(bindExternal({ kid: "me", hmacKey }, jwk, URL)));
  expect(bound.head).toEqual({ alg: "HS256", kid: "me", url: URL });
  expect(JSON.parse(decoded(bound.payload))).toEqual(jwk);
  expect(bound.signature).toBe(
    createHmac("sha256", Buffer.alloc(32, 1)).update(bound.signed).digest("base64url"),
  );
});
