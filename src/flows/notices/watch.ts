import { newId } from "../../core/ids.ts";
import { NOTICE_KINDS, type NoticeKind } from "../../core/notices/kinds.ts";
import { atMostEvery } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { Store } from "../../store/engine/client.ts";
import type { Fact } from "../../store/notices/facts.ts";
import { endedApprovals, endNotice, openNotices, raiseNotice } from "../../store/notices/notices.ts";
import { FACT_SOURCES, type FactDeps, MAX_FACTS } from "./facts.ts";

// Makes notices of facts that rows, the disk and providers show. An operator who reads no log would miss it. Raising each in the write
// that makes it true was tried on paper: a suspension would cost every delivery a statement, and a disk has no write.

/** Pause between two looks at the facts, milliseconds. */
export const LOOK_PAUSE_MS = MINUTE_MS;

/** Makes the chore that raises and ends notices as the facts say. */
export function watchFacts(deps: FactDeps): () => Promise<void> {
  const isTime = atMostEvery(deps.clock, LOOK_PAUSE_MS);
  return async () => {
    if (!isTime()) return;
    const now = deps.clock.now();
    for (const kind of NOTICE_KINDS) {
      const facts = await FACT_SOURCES[kind]?.(deps, now).catch((error: unknown) => {
        // What cannot be read is neither true nor over.
        log("notices").error("the facts of a notice cannot be read", { kind, error: String(error) });
      });
      if (facts !== undefined) await settle(deps, kind, facts);
    }
    await endApprovals(deps);
  };
}

/** Raises notices of new facts, and ends those whose fact is gone. */
export async function settle({ db, clock }: Store, kind: NoticeKind, facts: readonly Fact[]): Promise<void> {
  const open = await openNotices(db, kind, 2 * MAX_FACTS);
  const [known, current] = [new Set(open.map(keyOf)), new Set(facts.map(keyOf))];
  const now = clock.now();
  const raised = facts.filter((fact) => !known.has(keyOf(fact)));
  const isWhole = facts.length < MAX_FACTS;
  const gone = isWhole ? open.filter((notice) => !current.has(keyOf(notice))) : [];
  if (raised.length + gone.length === 0) return;
  await db.write([
    ...raised.map((fact) => raiseNotice({ ...fact, id: newId("ntc", now), kind, at: now })),
    ...gone.map(({ subjectId }) => endNotice(kind, subjectId, now)),
  ]);
  for (const { subject, senderId } of raised) log("notices").warn("notice", { kind, subject, senderId });
}

function keyOf({ accountId, subjectId }: Pick<Fact, "accountId" | "subjectId">): string {
  return `${accountId} ${subjectId}`;
}

/** Ends the notices of messages that wait for no approval any more. */
async function endApprovals({ db, clock }: Store): Promise<void> {
  const ended = await endedApprovals(db, MAX_FACTS);
  if (ended.length > 0) await db.write(ended.map((id) => endNotice("approval_waiting", id, clock.now())));
}
