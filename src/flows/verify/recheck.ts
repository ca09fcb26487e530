import { log } from "../../log.ts";
import { claimDueDomains } from "../../store/domains.ts";
import { type VerifyDeps, verifyDomain } from "./verify.ts";

/** Domains checked at a time: each asks a handful of questions. */
const CONCURRENT_CHECKS = 8;

/** A domain taken for a check is not taken again before this, milliseconds: more than its lookups can last. */
const CHECK_LEASE_MS = 120_000;

/**
 * Checks domains whose background check is due, at most `limit`.
 * @returns how many were taken
 */
export async function recheckDue(deps: VerifyDeps, limit: number): Promise<number> {
  const now = deps.clock.now();
  const due = await claimDueDomains(deps.db, now, now + CHECK_LEASE_MS, limit);
  const left = due.values();
  const worker = async (): Promise<void> => {
    for (const { senderId, id } of left) {
      // One domain's trouble must not keep the others from their check.
      await verifyDomain(deps, senderId, id, "sweep").catch((error: unknown) =>
        log("verify").error("domain check failed", { domainId: id, error: String(error) }),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENT_CHECKS, due.length) }, worker));
  return due.length;
}
