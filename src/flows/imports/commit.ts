import { actingAs, NOBODY } from "../../core/actor.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { DAY_MS, MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { countPart, type Import, nextImports, oldImport, removeImport } from "../../store/imports/imports.ts";
import { settlePart, waitingPart } from "../../store/imports/parts.ts";
import { planOf } from "../../store/projects/holdings.ts";
import type { PartDeps } from "./part.ts";
import { countsOf, savePart } from "./save-part.ts";

/** Projects whose imports a turn continues, and parts that it commits. */
const PROJECTS_PER_TURN = 20;
const PARTS_PER_TURN = 60;
/** Days for which the results of an import are kept. */
export const IMPORT_DAYS = 7;
/** Time without a part after which an upload has failed, milliseconds. A body that comes more slowly is refused. */
export const QUIET_UPLOAD_MS = 10 * MINUTE_MS;
/** Parts removed in one write, and such writes of a turn. */
const PARTS_PER_WRITE = 20;
const REMOVALS_PER_TURN = 20;

/**
 * Makes the chore that commits parts of imports. Each is one write with its results, so a crash neither loses nor doubles a
 * row. Projects take turns.
 */
export function commitImports(deps: PartDeps): () => Promise<void> {
  return async () => {
    for (let done = 0; done < PARTS_PER_TURN; ) {
      const imports = await nextImports(deps.db, PROJECTS_PER_TURN);
      if (imports.length === 0) return;
      let committed = 0;
      for (const one of imports) {
        // The audit trail has the import itself, not each of its rows.
        const isDone = await actingAs(NOBODY, () => commitPart(deps, one)).catch((error: unknown) => {
          log("sweep").error("a part of an import failed", { import: one.id, error: String(error) });
          return false;
        });
        if (isDone) committed += 1;
        await yieldToEventLoop();
      }
      if (committed === 0) return;
      done += committed;
    }
  };
}

/** Commits the next part of an import. Returns false if another process or an erasure was faster. */
async function commitPart(deps: PartDeps, { id, senderId, kind, doneParts }: Import): Promise<boolean> {
  const { db, clock } = deps;
  const [waiting, plan] = await Promise.all([waitingPart(db, id, doneParts), planOf(db, senderId)]);
  if (waiting === null || plan === null) return false;
  const now = clock.now();
  try {
    await savePart(deps, kind, {
      senderId,
      project: { plan },
      now,
      rows: waiting.rows,
      settle: (rows) => [...settlePart(waiting.place, rows), countPart(id, countsOf(rows), now)],
    });
    return true;
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) throw error;
    return false;
  }
}

/** Makes the chore that removes failed uploads, and imports whose results are no longer kept. */
export function forgetImports({ db, clock }: Pick<PartDeps, "db" | "clock">): () => Promise<void> {
  return async () => {
    const now = clock.now();
    const id = await oldImport(db, now - QUIET_UPLOAD_MS, now - IMPORT_DAYS * DAY_MS);
    if (id === null) return;
    for (let write = 0; write < REMOVALS_PER_TURN; write++)
      if (!(await removeImport(db, id, PARTS_PER_WRITE))) return;
  };
}
