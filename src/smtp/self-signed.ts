import { generate } from "selfsigned";

/** How long a self-signed certificate is good: longer than a process runs, since each start makes a new one. */
export const SELF_SIGNED_DAYS = 3650;
/** RFC 5280 App. A.1 ub-common-name. */
const MAX_COMMON_NAME = 64;
const DAY_MS = 86_400_000;
/** Peers whose clock is behind ours still find the certificate valid. */
const CLOCK_SLACK_MS = DAY_MS;

/** A key and a certificate that it signs itself, for opportunistic TLS. `now` in milliseconds. */
export async function selfSignedCertificate(
  hostname: string,
  now: number,
): Promise<{ key: string; cert: string }> {
  const notBeforeDate = new Date(now - CLOCK_SLACK_MS);
  const made = await generate([{ name: "commonName", value: hostname.slice(0, MAX_COMMON_NAME) }], {
    algorithm: "sha256",
    keySize: 2048,
    notBeforeDate,
    notAfterDate: new Date(notBeforeDate.getTime() + SELF_SIGNED_DAYS * DAY_MS),
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "subjectAltName", altNames: [{ type: 2, value: hostname }] },
    ],
  });
  return { key: made.private, cert: made.cert };
}
