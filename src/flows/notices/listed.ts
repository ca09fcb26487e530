import { atMostEvery } from "../../core/time/clock.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import type { Store } from "../../store/engine/client.ts";
import { claimFact, readFact } from "../../store/installation/facts.ts";
import { openNotices } from "../../store/notices/notices.ts";
import { type BlockListParts, blockListChecks } from "../health/block-lists.ts";
import { type AskedList, recordAskedLists } from "../health/asked-lists.ts";
import { type HealthStatus, warn } from "../health/check.ts";
import { MAX_FACTS, ofInstallation } from "./facts.ts";
import { LOOK_PAUSE_MS, settle } from "./watch.ts";

/** Pause between two queries of the block lists by any process, milliseconds. Lists refuse those who ask much more often. */
export const LISTS_PAUSE_MS = HOUR_MS;

/** Makes the chore that asks block lists about our addresses every hour, first an hour after the first start. */
export function watchBlockLists(deps: Store & BlockListParts): () => Promise<void> {
  const { db, clock } = deps;
  const isTime = atMostEvery(clock, LOOK_PAUSE_MS);
  return async () => {
    if (!isTime()) return;
    const now = clock.now();
    const asked = await readFact(db, "lists_asked");
    if (asked !== null && now - Number(asked) < LISTS_PAUSE_MS) return;
    // Of several processes one asks.
    if (!(await claimFact(db, "lists_asked", asked, String(now))) || asked === null) return;
    await askLists(deps);
  };
}

/** A list that does not answer keeps its notice as it is: silence says neither. */
async function askLists(deps: Store & BlockListParts): Promise<void> {
  const lists: AskedList[] = [];
  for (const { name, run } of blockListChecks(deps)) {
    const list = name.replace(/^list /, "");
    const {
      status,
      message,
      fix = "",
    } = await Promise.resolve(run()).catch((error: unknown) => warn(String(error), ""));
    lists.push({ list, status, message, fix });
  }
  const { db, clock, addresses } = deps;
  await db.write([recordAskedLists({ at: clock.now(), addresses, lists })]);
  const of = (wanted: HealthStatus) => lists.filter(({ status }) => status === wanted);
  const listed = of("fail").map(({ list, message, fix }) => ({
    subjectId: list,
    subject: list,
    detail: `${message} ${fix}`.trim(),
  }));
  const unknown = new Set(of("warn").map(({ list }) => list));
  const open = await openNotices(db, "address_listed", MAX_FACTS);
  const kept = open.filter(({ subjectId }) => unknown.has(subjectId));
  await settle(deps, "address_listed", [...(await ofInstallation(deps, listed)), ...kept]);
}
