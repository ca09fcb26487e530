import { createPublicKey } from "node:crypto";
import { DAY_MS, SECOND_MS } from "../../../core/time/units.ts";
import type { PublicDkimKey } from "../../../store/domains/dkim-keys.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import type { DomainLookups } from "../../records/lookups.ts";
import { dkimName } from "../../records/records.ts";
import { KEY_TTL_SECONDS } from "../../zone/service-zone.ts";
import { fail, type Finding, warn } from "../check.ts";

/** Age of a DKIM key that should be rotated, days. */
export const OLD_KEY_DAYS = 400;
/** Bits of an RSA key that receivers refuse below the first, and distrust below the second (RFC 8301 §3.2). */
const [LEAST_BITS, GOOD_BITS] = [1024, 2048];
/** Aliases in a row that every resolver follows. */
const MAX_ALIASES = 3;

/** Returns what is wrong with the length of a domain's keys; null if nothing is. */
export function lengthFault({ id }: Domain, keys: readonly PublicDkimKey[]): Finding | null {
  const bits = Math.min(...keys.map(bitsOf));
  const fix = `Rotate it: POST /v1/domains/${id}/rotate-dkim.`;
  if (bits < LEAST_BITS) return fail(`A DKIM key has ${bits} bits, and receivers ignore its signature.`, fix);
  if (bits < GOOD_BITS) return warn(`A DKIM key has ${bits} bits; receivers expect ${GOOD_BITS}.`, fix);
  return null;
}

/** Returns the bits of an RSA key. Ed25519 has one length, which is enough. */
function bitsOf({ algorithm, publicKey }: PublicDkimKey): number {
  if (algorithm !== "rsa") return Infinity;
  const key = createPublicKey({ key: Buffer.from(publicKey, "base64"), format: "der", type: "spki" });
  return key.asymmetricKeyDetails?.modulusLength ?? 0;
}

/** Returns what some receivers mind about a domain's keys: old ones, and a long chain of aliases; null if nothing. */
export async function keyWeakness(
  { cname }: DomainLookups,
  { id, name }: Domain,
  { keys, now }: { keys: readonly PublicDkimKey[]; now: number },
): Promise<Finding | null> {
  for (const { selector } of keys) {
    const aliases = await aliasesOf(cname, dkimName(selector, name));
    if (aliases > MAX_ALIASES)
      return warn(
        `The DKIM key ${selector} is behind more than ${MAX_ALIASES} aliases, and some receivers follow fewer.`,
        `Point the CNAME at the name that GET /v1/domains/${id} lists.`,
      );
  }
  const oldest = Math.min(...keys.map(({ createdAt }) => createdAt));
  if (now - oldest <= OLD_KEY_DAYS * DAY_MS) return null;
  return warn(
    `A DKIM key is older than ${OLD_KEY_DAYS} days.`,
    `Rotate it: POST /v1/domains/${id}/rotate-dkim.`,
  );
}

async function aliasesOf(cname: DomainLookups["cname"], name: string): Promise<number> {
  let [at, count] = [name, 0];
  while (count <= MAX_ALIASES) {
    const found = await cname(at);
    const [next] = found.status === "ok" ? found.records : [];
    if (next === undefined) break;
    [at, count] = [next, count + 1];
  }
  return count;
}

/** Returns a sentence if a key is so young that some caches may not have its record yet; else "". */
export function youngKeyNote(keys: readonly PublicDkimKey[], now: number): string {
  const isYoung = keys.some(({ createdAt }) => now - createdAt < KEY_TTL_SECONDS * SECOND_MS);
  return isYoung ? " A DKIM key is younger than its TTL, so some caches may lack it." : "";
}
