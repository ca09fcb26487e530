import { createPrivateKey, createPublicKey, generateKeyPair, sign } from "node:crypto";
import { promisify } from "node:util";
import { der, TAG } from "../../core/crypto/der.ts";
import {
  ecdsaSignatureAlgorithm,
  identifier,
  rsaSignatureAlgorithm,
  signedBody,
  subjectAltName,
} from "../../core/crypto/x509.ts";

/**
 * RSA for mail hosts, because old mail servers and printers know nothing else; 2048 bits, the least that CAs take. P-256 for
 * hosts that browsers and mail servers of today ask: a server reads a thousand such keys in the time of a hundred RSA keys.
 */
export type CertificateKeyKind = "rsa" | "p256";
const RSA_BITS = 2048;
/** extensionRequest, 1.2.840.113549.1.9.14 (RFC 2985 §5.4.2). */
const EXTENSION_REQUEST = "2a864886f70d01090e";
/** Implicit tag of the attributes. */
const ATTRIBUTES_FIELD = 0xa0;

/** Makes the private key of a certificate, in PEM. */
export async function newCertificateKey(kind: CertificateKeyKind): Promise<string> {
  const make = promisify(generateKeyPair);
  const { privateKey } = await (kind === "rsa"
    ? make("rsa", { modulusLength: RSA_BITS })
    : make("ec", { namedCurve: "P-256" }));
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Makes a request for a certificate (RFC 2986 §4) in DER. The names are in its extension, and the subject is empty. */
export function certificateRequest(keyPem: string, names: readonly string[]): Buffer {
  const key = createPrivateKey(keyPem);
  const extensions = der(TAG.set, der(TAG.sequence, subjectAltName(names)));
  const body = der(
    TAG.sequence,
    der(TAG.integer, Buffer.from([0])),
    der(TAG.sequence),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    der(ATTRIBUTES_FIELD, der(TAG.sequence, identifier(EXTENSION_REQUEST), extensions)),
  );
  const algorithm = key.asymmetricKeyType === "ec" ? ecdsaSignatureAlgorithm() : rsaSignatureAlgorithm();
  return signedBody(body, sign("sha256", body, key), algorithm);
}
