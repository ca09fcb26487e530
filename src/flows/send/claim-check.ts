import type { Clock } from "../../core/clock.ts";
import { log } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { type Claim, isClaimHeld } from "../../store/outbox.ts";
import { LEASE_MS } from "../sweep/instance.ts";

export interface ClaimCheckDeps {
  db: Db;
  clock: Clock;
}

/**
 * Time since a claim was taken, or last looked up, in which nobody else can have freed it, milliseconds: others wait for the
 * lease, and our last heartbeat may be older than the claim.
 */
export const SURE_MS = LEASE_MS / 2;

/**
 * Tells whether the claim still holds, for the moment before its mail leaves. A process that stood still (stopped, its machine
 * asleep, its server out of reach) may wake up behind the lease with mail in hand that others have delivered meanwhile. Where
 * nobody can tell it does not hold: what is ours after all is found to be an orphan, and goes out then.
 *
 * The database is asked only where so much time has passed; a peer that is fast costs nothing.
 * @param claimedAt a time before the claim was written, milliseconds
 */
export function claimCheck(
  { db, clock }: ClaimCheckDeps,
  claim: Claim,
  claimedAt: number,
): () => boolean | Promise<boolean> {
  let sureAt = claimedAt;
  return () => {
    const now = clock.now();
    // Either way: where the clock was put back nobody knows how long ago that was.
    if (Math.abs(now - sureAt) <= SURE_MS) return true;
    // A snapshot of before we stood still would tell of before.
    db.heard();
    return isClaimHeld(db, claim).then(
      (held) => {
        if (held) sureAt = now;
        else
          log("send").warn("others have taken up a mail of ours", {
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
