import { expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { readDer, readDerParts } from "../../../../src/core/crypto/der.ts";
import { certificateRequest, newCertificateKey } from "../../../../src/net/acme/csr.ts";

test("a request for a certificate names its hosts and key, and is signed with it", async () => {
  const key = await newCertificateKey();
  const [body, , signature] = readDerParts(readDer(certificateRequest(key, ["mail.test", "mx.mail.test"])));
  const [, subject, publicKey, attributes] = body === undefined ? [] : readDerParts(body);
  expect(subject?.content).toHaveLength(0);
  expect(attributes?.content.toString("latin1")).toContain("mx.mail.test");
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  expect(spki.subarray(-(publicKey?.content.length ?? 0)).equals(publicKey?.content ?? Buffer.alloc(0))).toBe(
    true,
  );
  const request = certificateRequest(key, ["mail.test", "mx.mail.test"]);
  const signed = request.subarray(4, readDer(request, 4).end);
  expect(
    verify("sha256", signed, createPublicKey(key), signature?.content.subarray(1) ?? Buffer.alloc(0)),
  ).toBe(true);
});
