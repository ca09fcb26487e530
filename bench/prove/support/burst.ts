/** Brings a few sends and messages once each, and records the service's answers. */
import type { Ledger } from "./ledger.ts";
import { recipientOf, tryMail, trySend } from "./load.ts";
import type { Ground } from "./service.ts";

/** Results of several bursts. */
export interface Bursts {
  /** Proper refusals: an envelope with 5xx, or 451. */
  refusedSends: number;
  refusedMails: number;
  /** Refusals of another kind, and connections that broke, in words. */
  wrong: string[];
  /** Recipients of refused sends: none of them may ever get mail. */
  refused: string[];
  /** Milliseconds until the service accepted again, each time. */
  recoveries: number[];
}

const SENDS = 5;
const MAILS = 5;
/**
 * Time limit for the service to accept again. The run waits a little longer, so that the table shows how late it was.
 */
export const RECOVERY_LIMIT_MS = 10_000;
const GIVE_UP_MS = 20_000;
const POLL_MS = 50;

/** Numbers of items: each is brought once. */
export interface Numbers {
  next: number;
}

/** Returns empty results. */
export function noBursts(): Bursts {
  return { refusedSends: 0, refusedMails: 0, wrong: [], refused: [], recoveries: [] };
}

/** Brings sends and messages at once, each a single time, and records which were promised. */
export async function burst(ground: Ground, ledger: Ledger, numbers: Numbers, seen: Bursts): Promise<void> {
  const sends = Array.from({ length: SENDS }, () => oneSend(ground, ledger, numbers.next++, seen));
  const mails = Array.from({ length: MAILS }, () => oneMail(ground, ledger, numbers.next++, seen));
  await Promise.all([...sends, ...mails]);
}

async function oneSend(ground: Ground, ledger: Ledger, n: number, seen: Bursts): Promise<boolean> {
  const { status, id, type, code } = await trySend(ground.service, n);
  if (id !== null) {
    await ledger.record({ kind: "send", n, id });
    return true;
  }
  seen.refused.push(recipientOf(n));
  if (status !== null && status >= 500 && type !== null) seen.refusedSends++;
  else seen.wrong.push(`send ${n}: ${status ?? "broken"} ${type ?? ""} ${code ?? ""}`);
  return false;
}

async function oneMail(ground: Ground, ledger: Ledger, n: number, seen: Bursts): Promise<boolean> {
  const { code, id, text } = await tryMail(ground.service, n);
  if (id !== null) {
    await ledger.record({ kind: "mail", n, id });
    return true;
  }
  if (code === 451) seen.refusedMails++;
  else seen.wrong.push(`mail ${n}: ${code ?? "broken"} ${text}`);
  return false;
}

/** Waits until a send and a message are accepted, and records how long that took. */
export async function recovered(
  ground: Ground,
  ledger: Ledger,
  numbers: Numbers,
  seen: Bursts,
): Promise<void> {
  const began = performance.now();
  const until = began + GIVE_UP_MS;
  for (const one of [oneSend, oneMail])
    while (!(await one(ground, ledger, numbers.next++, seen)))
      if (performance.now() > until) break;
      else await Bun.sleep(POLL_MS);
  seen.recoveries.push(performance.now() - began);
}
