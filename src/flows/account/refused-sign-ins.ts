import { HOUR_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { type RefusedSignIn, refusedSignIn } from "../../store/installation/audit-log.ts";

/**
 * Maximum number of refused sign-ins that a process notes in an hour, so that repeated attempts do not fill the disk. The next
 * one says how many were left out.
 */
export const MAX_REFUSED_AN_HOUR = 60;

/** Notes a refused sign-in in the audit trail and in the log. It never fails. @param now milliseconds */
export type NoteRefused = (refused: Omit<RefusedSignIn, "at" | "leftOut">, now: number) => Promise<void>;

/** Returns a function that notes refused sign-ins. */
export function noteRefused(db: Db): NoteRefused {
  let [since, noted, leftOut] = [Number.NEGATIVE_INFINITY, 0, 0];
  return async (refused, now) => {
    if (now - since >= HOUR_MS) [since, noted] = [now, 0];
    if (noted >= MAX_REFUSED_AN_HOUR) {
      leftOut++;
      return;
    }
    noted++;
    const statement = refusedSignIn({ ...refused, at: now, leftOut });
    const { how, reason, ip } = refused;
    log("members").warn("sign-in refused", { how, reason, ip, leftOut });
    leftOut = 0;
    await db.write([statement]).catch((error: unknown) => {
      log("members").error("a refused sign-in could not be noted", { error: String(error) });
    });
  };
}
