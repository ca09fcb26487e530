import { log } from "../../log.ts";
import type { Store } from "../../store/engine/client.ts";
import { type Claim, isClaimHeld } from "../../store/messages/outbox.ts";
import { LEASE_MS } from "../sweep/instance.ts";

/**
 * Time since a claim was taken, or last looked up, in which no other process can have freed it, milliseconds. Other
 * processes wait for the whole lease. Half of it is left because our last heartbeat may be older than the claim.
 */
export const TRUSTED_MS = LEASE_MS / 2;

/**
 * Returns a check of whether the claim still holds, for the moment before its message leaves. A process may stand
 * still: stopped, its machine asleep, its server out of reach. If it wakes after the lease, another process may have
 * delivered its message. If the check fails, the message does not go. If the claim is ours after all, the sweep finds
 * it as an orphan and the message goes out then. It reads the database only if TRUSTED_MS has passed, so a fast peer
 * costs nothing.
 * @param claimedAt a time before the claim was written, milliseconds
 */
export function claimCheck(
  { db, clock }: Store,
  claim: Claim,
  claimedAt: number,
): () => boolean | Promise<boolean> {
  let sureAt = claimedAt;
  return () => {
    const now = clock.now();
    // The wall clock, which runs while the machine sleeps. If it was set back, the time that has passed is unknown.
    if (Math.abs(now - sureAt) <= TRUSTED_MS) return true;
    // A snapshot from before this process stood still would be out of date.
    db.refreshReads();
    return isClaimHeld(db, claim).then(
      (held) => {
        if (held) sureAt = now;
        else
          log("send").warn("another process has claimed this message", {
            messageId: claim.messageId,
            ord: claim.ord,
          });
        return held;
      },
      (error: unknown) => {
        log("send").error("a claim could not be looked up", {
          messageId: claim.messageId,
          error: String(error),
        });
        return false;
      },
    );
  };
}
