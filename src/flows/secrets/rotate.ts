// Changes the master key while processes run. An operator whose key has leaked would miss it: without it every domain's records,
// webhook secret and link in sent mail would change, as after a lost key. A column for the id of each value's key was simpler to
// read, but needs a rule in every statement that seals. To try both keys costs microseconds.
//
// | made with the master key                     | after a rotation                                            |
// |----------------------------------------------|-------------------------------------------------------------|
// | secrets in the database (`SEALED`)           | sealed again                                                |
// | unsubscribe links and addresses              | work for `KEPT_DAYS`, unless `master-key forget --all`      |
// | return paths, Message-IDs of copies          | work for `KEPT_DAYS`, unless `master-key forget`            |
// | links and pictures of tracking               | work for `KEPT_DAYS`, unless `master-key forget`            |
// | ids that relays give back, cursors of lists  | work for `KEPT_DAYS`, unless `master-key forget`            |
// | sessions of the dashboard                    | end: people sign in again                                   |
// | download links of Resend's API (one hour)    | end                                                         |
// | encrypted backups                            | open with the old key alone                                 |
//
// Hashes of API keys and start tokens, DKIM keys, passwords of relays and Idempotency-Keys do not depend on it.
//
// The steps are in the database, so a call continues where the last one was interrupted:
// 1. `master_key_rotation` names both keys. Processes look at each heartbeat, and use both if they have them.
// 2. If every process has the new key, `master_key` names it, and it seals from now on. Else the first step is undone.
// 3. When every process seals with it, all secrets are sealed again, in walks until one finds nothing.
// 4. One write keeps what must stay valid of the old key, and ends the rotation. Processes then drop the old key.
import type { Store } from "../../store/engine/client.ts";
import { claimFact, factGuard, readFact, recordFact } from "../../store/installation/facts.ts";
import { keptOf, openKept, sealKept } from "./kept-keys.ts";
import type { MasterKey } from "./master-key.ts";
import { lackingAfterLease, namesOf } from "./processes.ts";
import { resealAll, type Resealed } from "./reseal.ts";

export interface RotationDeps extends Store {
  /** Called when every secret is sealed again, before the old key is dropped. */
  beforeEnd: () => void;
}

/** A rotation that cannot go on. The message says what to do. */
export class RotationError extends Error {}

/** Changes the master key, or continues a change that was interrupted. Returns what was sealed again, by table. */
export async function rotateMasterKey(
  deps: RotationDeps,
  from: MasterKey,
  to: MasterKey,
): Promise<Resealed[]> {
  const { db } = deps;
  const pair = `${from.id} ${to.id}`;
  if ((await readFact(db, "master_key")) === from.id) {
    await db.write([recordFact("master_key_rotation", pair)]);
    await requireAll(deps, pair, to);
    if (!(await claimFact(db, "master_key", from.id, to.id))) throw interrupted();
  }
  const slow = await lackingAfterLease(deps, ([first]) => first === to.id);
  if (slow.length > 0)
    throw new RotationError(
      `these processes do not use the new key yet: ${namesOf(slow)}. Restart them, and call this again`,
    );
  const box = { keys: [to.derived.box, from.derived.box] } as const;
  const done = await resealAll(db, box, factGuard("master_key", to.id));
  deps.beforeEnd();
  await end(deps, from, to, pair);
  return done;
}

/** Undoes the first step if a process lacks the new key. */
async function requireAll(deps: RotationDeps, pair: string, to: MasterKey): Promise<void> {
  const lacking = await lackingAfterLease(deps, (ids) => ids.includes(to.id));
  if (lacking.length === 0) return;
  await claimFact(deps.db, "master_key_rotation", pair, "");
  throw new RotationError(
    `these processes do not have the new key: ${namesOf(lacking)}. Nothing was changed. Set MASTER_KEY to the new key and MASTER_KEY_OLD to the old one there, restart them, and call this again`,
  );
}

async function end({ db, clock }: Store, from: MasterKey, to: MasterKey, pair: string): Promise<void> {
  const now = clock.now();
  const sealed = (await readFact(db, "kept_keys")) ?? undefined;
  const earlier = openKept(to.derived.box, sealed, now).filter(({ id }) => id !== from.id && id !== to.id);
  const kept = sealKept(to.derived.box, [...earlier, keptOf(from.id, from.derived, now)]);
  const pending = await readFact(db, "master_key_rotation");
  // Another call has ended it, or the answer to this write was lost.
  if (pending === "") return;
  if (pending !== pair) throw interrupted();
  await db.write([recordFact("kept_keys", kept), recordFact("master_key_rotation", "")]);
}

function interrupted(): RotationError {
  return new RotationError("another rotation ran at the same time: call this again");
}
