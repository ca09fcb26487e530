import { generate } from "selfsigned";

export interface KeyAndCert {
  key: string;
  cert: string;
}

// RSA keys: selfsigned cannot make elliptic ones under Bun.

/** A certificate authority for one test. @param validFor when it may be used; if left out, for a year */
export async function makeCa(
  validFor: { notBeforeDate?: Date; notAfterDate?: Date } = {},
): Promise<KeyAndCert> {
  const made = await generate([{ name: "commonName", value: "Test CA" }], {
    ...validFor,
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { key: made.private, cert: made.cert };
}

/** A certificate for host names and IP addresses. If there is no authority, it signs itself. */
export async function makeCert(names: readonly string[], ca?: KeyAndCert): Promise<KeyAndCert> {
  const altNames = names.map((name) =>
    /^[0-9.]+$|:/.test(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  );
  const made = await generate([{ name: "commonName", value: names[0] ?? "test" }], {
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "subjectAltName", altNames },
    ],
    ...(ca === undefined ? {} : { ca }),
  });
  return { key: made.private, cert: made.cert };
}
