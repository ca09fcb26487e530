import { randomBytes, sign } from "node:crypto";
import { DAY_MS } from "../../core/time/units.ts";
import { der, derTime, TAG } from "../../core/crypto/der.ts";
import { type MakeRsaKey, newRsaKey } from "../../core/crypto/rsa-key.ts";
import {
  identifier,
  pem,
  rsaSignatureAlgorithm,
  signedBody,
  subjectAltName,
} from "../../core/crypto/x509.ts";

/** Lifetime of a self-signed certificate. A process runs for less, and each start makes a new one. */
export const SELF_SIGNED_DAYS = 3650;
/** RFC 5280 App. A.1 ub-common-name. */
const MAX_COMMON_NAME = 64;
/** The certificate is valid even if the peer's clock is behind ours. */
const CLOCK_SLACK_MS = DAY_MS;
/** RFC 5280 §4.1.2.2: at most 20. */
const SERIAL_OCTETS = 16;

/** 2.5.4.3 and 2.5.29.19 (RFC 5280 App. A.1, §4.2.1.9). */
const COMMON_NAME = "550403";
const BASIC_CONSTRAINTS = "551d13";
/** Explicit tags of a certificate's version and extensions. */
const VERSION_FIELD = 0xa0;
const EXTENSIONS_FIELD = 0xa3;
const VERSION_3 = 2;

/**
 * Creates a key and a self-signed certificate (RFC 5280 §4.1) for opportunistic TLS. Written here because a general
 * library takes as long to load as the rest of the start.
 * @param now milliseconds since the epoch
 */
export async function selfSignedCertificate(
  hostname: string,
  now: number,
  makeRsaKey: MakeRsaKey = newRsaKey,
): Promise<{ key: string; cert: string }> {
  const { privateKey, publicKey } = await makeRsaKey();
  const from = now - CLOCK_SLACK_MS;
  const name = commonName(hostname.slice(0, MAX_COMMON_NAME));
  const body = der(
    TAG.sequence,
    der(VERSION_FIELD, der(TAG.integer, Buffer.from([VERSION_3]))),
    der(TAG.integer, serialNumber()),
    rsaSignatureAlgorithm(),
    name,
    der(TAG.sequence, derTime(from), derTime(from + SELF_SIGNED_DAYS * DAY_MS)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(EXTENSIONS_FIELD, der(TAG.sequence, ...extensions(hostname))),
  );
  const signature = sign("sha256", body, privateKey);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: pem("CERTIFICATE", signedBody(body, signature, rsaSignatureAlgorithm())),
  };
}

/** Positive, and without leading zeros: the first octet is between 0x40 and 0x7f. */
function serialNumber(): Buffer {
  const octets = randomBytes(SERIAL_OCTETS);
  octets.writeUInt8((octets.readUInt8(0) & 0x3f) | 0x40, 0);
  return octets;
}

function commonName(name: string): Buffer {
  const attribute = der(TAG.sequence, identifier(COMMON_NAME), der(TAG.utf8String, Buffer.from(name)));
  return der(TAG.sequence, der(TAG.set, attribute));
}

/** Not a CA, and valid for this host. */
function extensions(hostname: string): Buffer[] {
  return [
    der(TAG.sequence, identifier(BASIC_CONSTRAINTS), der(TAG.octetString, der(TAG.sequence))),
    subjectAltName([hostname]),
  ];
}
