import { log } from "../../log.ts";
import { claimDueDomains } from "../../store/domains/domains.ts";
import { verifyDomain } from "./verify.ts";
import type { Checking } from "./checking.ts";

/** Domains checked at a time. Each takes a handful of lookups. */
const CONCURRENT_CHECKS = 8;

/** Time before a claimed domain can be claimed again, milliseconds. Its lookups take less. */
const CHECK_LEASE_MS = 120_000;

/**
 * Checks domains whose background check is due, at most `limit`.
 * @returns the number of claimed domains
 */
export async function recheckDue(deps: Checking, limit: number): Promise<number> {
  const now = deps.clock.now();
  const due = await claimDueDomains(deps.db, now, now + CHECK_LEASE_MS, limit);
  const left = due.values();
  const worker = async (): Promise<void> => {
    for (const { senderId, id } of left) {
      // If one check fails, the other domains are still checked.
      await verifyDomain(deps, senderId, id, "sweep").catch((error: unknown) =>
        log("verify").error("domain check failed", { domainId: id, error: String(error) }),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENT_CHECKS, due.length) }, worker));
  return due.length;
}
