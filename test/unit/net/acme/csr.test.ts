import { expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { readDer, readDerParts } from "../../../../src/core/crypto/der.ts";
import { certificateRequest, newCertificateKey } from "../../../../src/net/acme/csr.ts";

test.each([
  ["rsa", "1.2.840.113549.1.1.11", "2a864886f70d01010b"],
  ["p256", "1.2.840.10045.4.3.2", "2a8648ce3d040302"],
] as const)(
  "a request with a key of kind %s names its hosts and key, and is signed with it by %s",
  async (kind, _, algorithm) => {
    const key = await newCertificateKey(kind);
    const request = certificateRequest(key, ["mail.test", "mx.mail.test"]);
    const [body, signedBy, signature] = readDerParts(readDer(request));
    expect(signedBy?.content.toString("hex")).toContain(algorithm);
    const [, subject, publicKey, attributes] = body === undefined ? [] : readDerParts(body);
    expect(subject?.content).toHaveLength(0);
    expect(attributes?.content.toString("latin1")).toContain("mx.mail.test");
    const spki = createPublicKey(key).export({ type: "spki", format: "der" });
    expect(
      spki.subarray(-(publicKey?.content.length ?? 0)).equals(publicKey?.content ?? Buffer.alloc(0)),
    ).toBe(true);
    const start = request.length - readDer(request).content.length;
    const signed = request.subarray(start, readDer(request, start).end);
    expect(
      verify("sha256", signed, createPublicKey(key), signature?.content.subarray(1) ?? Buffer.alloc(0)),
    ).toBe(true);
  },
);
