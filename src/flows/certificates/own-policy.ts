import { createHash } from "node:crypto";
import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS, SECOND_MS } from "../../core/time/units.ts";
import { CertificateError } from "../../smtp/certificate.ts";
import type { Db } from "../../store/engine/client.ts";
import { mtaStsHost, mxHost } from "../zone/own-names.ts";
import { type CertificateSettings, servedCertificate, verifiable } from "./served.ts";

/** Longest time for which senders may keep our policy. */
const MAX_AGE_MS = 7 * DAY_MS;
/** Hex digits of a policy's id (RFC 8461 §3.1: at most 32). */
const ID_DIGITS = 16;

export type PolicySettings = CertificateSettings & Pick<Config, "tlsPort" | "roles">;

/** Our own MTA-STS policy (RFC 8461 §3). */
export interface OwnPolicy {
  /** Changes if the policy says something else. */
  id: string;
  text: string;
}

/**
 * Returns the policy that the service domain serves and announces. Returns null unless this process serves it
 * on TLS_PORT under a certificate that senders can verify, both at the policy's host and at the mail host. No sender may keep it for longer
 * than the certificate lasts, so a renewal that fails for good never stops mail.
 */
export async function ownPolicy(
  { db, clock }: { db: Db; clock: Clock },
  settings: PolicySettings,
): Promise<OwnPolicy | null> {
  const { serviceDomain, tlsPort, roles } = settings;
  if (tlsPort === null || !roles.has("api")) return null;
  const mx = mxHost(serviceDomain);
  const served = await servedCertificate(() => db, settings).catch((error: unknown) => {
    if (error instanceof CertificateError) return null;
    throw error;
  });
  const now = clock.now();
  const leaf = served && verifiable(served, [mtaStsHost(serviceDomain), mx], now);
  if (leaf === null) return null;
  const rules = ["version: STSv1", "mode: enforce", `mx: ${mx}`];
  const left = Math.min(MAX_AGE_MS, Date.parse(leaf.validTo) - now);
  return {
    id: createHash("sha256").update(rules.join("\n")).digest("hex").slice(0, ID_DIGITS),
    text: [...rules, `max_age: ${Math.floor(left / SECOND_MS)}`, ""].join("\r\n"),
  };
}
