import { expect, test } from "bun:test";
import { der, TAG } from "../../../../src/core/crypto/der.ts";
import { certificateId } from "../../../../src/net/acme/certificate-id.ts";

/** A certificate of just the fields that are read, with the values of the example in RFC 9773 §4.1. */
function certificate(extension: Buffer): Buffer {
  const version = der(0xa0, der(TAG.integer, Buffer.from([2])));
  const serial = der(TAG.integer, Buffer.from("0087654321", "hex"));
  const extensions = der(0xa3, der(TAG.sequence, extension));
  return der(TAG.sequence, der(TAG.sequence, version, serial, extensions));
}

function issuerKey(oid: string): Buffer {
  const key = der(0x80, Buffer.from("69885b6b87464041e1b37b847bd0ae2cde01c8d4", "hex"));
  const value = der(TAG.octetString, der(TAG.sequence, key));
  return der(TAG.sequence, der(TAG.objectIdentifier, Buffer.from(oid, "hex")), value);
}

test("a certificate is named by the key of its issuer and its serial number, with the leading zero", () => {
  expect(certificateId(certificate(issuerKey("551d23")))).toBe("aYhba4dGQEHhs3uEe9CuLN4ByNQ.AIdlQyE");
});

test("a certificate without the key of its issuer has no such name", () => {
  expect(certificateId(certificate(issuerKey("551d0e")))).toBeNull();
});
