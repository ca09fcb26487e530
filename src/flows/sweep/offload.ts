import { randomBase62 } from "../../core/ids.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { ObjectStore } from "../../net/object-store.ts";
import type { Store } from "../../store/engine/client.ts";
import { reservedBudget } from "../../store/contents/memory-budget.ts";
import {
  doomStray,
  type DoomedObject,
  doomedObjects,
  dropUnusedObjects,
  forgetStrays,
  lostStrays,
  type MovableContent,
  movableContents,
  noteStray,
  moveToObject,
  storedBytes,
} from "../../store/contents/content-objects.ts";
import { createBackoff } from "./backoff.ts";

export interface OffloadDeps extends Store {
  objects: ObjectStore;
  /** Prefix of our objects' names: empty, or with a slash at its end. */
  prefix: string;
}

/** Age at which a content is moved, milliseconds. A younger one is probably about to be sent or pushed. */
export const MOVED_AFTER_MS = 10_000;
const CONTENTS_AT_A_TIME = 8;
/** Largest size of a content that is moved in parallel with others. */
const SMALL_OCTETS = 256 * 1024;
const ROUNDS_PER_TURN = 16;
/** Time after which an upload of another process counts as lost, milliseconds. Its request has ended by then. */
export const UPLOAD_LOST_MS = HOUR_MS;
/** Objects removed at a time, and objects marked for removal in one write. */
const REMOVALS_AT_A_TIME = 8;
const UNUSED_PER_TURN = 200;
/** Random characters that distinguish objects with the same bytes. */
const SUFFIX_CHARS = 16;

/**
 * Makes the chore that moves contents from the database to the object store. They are committed to the database first, and
 * stay there if the store cannot be reached.
 *
 * The object's name is noted before the upload. After it, one write makes the content refer to the object. If the process
 * dies in between, the note lets a later turn remove the object. No content ever lacks its bytes.
 */
export function offloadContents(deps: OffloadDeps): () => Promise<void> {
  const backoff = createBackoff(deps.clock);
  let after = 0;
  return async () => {
    if (!backoff.isDue()) return;
    for (let round = 0; round < ROUNDS_PER_TURN; round++) {
      const before = deps.clock.now() - MOVED_AFTER_MS;
      const contents = await movableContents(deps.db, after, before, CONTENTS_AT_A_TIME);
      const moved = await moveAll(deps, contents);
      after = contents.length < CONTENTS_AT_A_TIME ? 0 : (contents.at(-1)?.id ?? 0);
      if (moved > 0) backoff.recordSuccess();
      else if (contents.length > 0) return backoff.recordFailure();
      if (after === 0) return;
    }
  };
}

/** Moves small contents in parallel and large ones one by one, because each is in memory. Returns how many were moved. */
async function moveAll(deps: OffloadDeps, contents: readonly MovableContent[]): Promise<number> {
  const moved = await Promise.all(
    contents.filter(({ size }) => size <= SMALL_OCTETS).map((content) => move(deps, content)),
  );
  for (const content of contents) if (content.size > SMALL_OCTETS) moved.push(await move(deps, content));
  return moved.filter(Boolean).length;
}

/** Moves a content. Returns false if the store failed, and true if the content was moved or is gone. */
async function move(deps: OffloadDeps, content: MovableContent): Promise<boolean> {
  const { db, clock, objects, prefix } = deps;
  const bytes = await storedBytes(db, content, reservedBudget());
  if (bytes === null) return true;
  const object = `${prefix}${Buffer.from(content.key).toString("hex")}-${randomBase62(SUFFIX_CHARS)}`;
  await db.write([noteStray(object, clock.now())]);
  try {
    await objects.put(object, bytes);
  } catch (error) {
    log("sweep").error("a content could not be moved to the object store", { error: String(error) });
    await db.write([doomStray(object)]);
    return false;
  }
  const [updated] = await db.write(moveToObject(content, object));
  // If the content was deleted, or moved by another process, the new object is not needed.
  if (updated?.changes !== 1) await db.write([doomStray(object)]);
  return true;
}

/** Makes the chore that removes unused objects and those of lost uploads from the object store. */
export function removeObjects(deps: Pick<OffloadDeps, "db" | "clock" | "objects">): () => Promise<void> {
  const { db, clock } = deps;
  const backoff = createBackoff(clock);
  // The walk continues after objects that the store refuses to remove.
  let after: DoomedObject | null = null;
  /** True if the store refused to remove an object in this walk. Then the next walk waits for the backoff. */
  let keepsSome = false;
  return async () => {
    const now = clock.now();
    await dropUnusedObjects(db, now, UNUSED_PER_TURN);
    await db.write((await lostStrays(db, now - UPLOAD_LOST_MS, UNUSED_PER_TURN)).map(doomStray));
    if (!backoff.isDue()) return;
    for (let round = 0; round < ROUNDS_PER_TURN; round++) {
      const doomed: DoomedObject[] = await doomedObjects(db, after, REMOVALS_AT_A_TIME);
      const removed = await removeAll(
        deps,
        doomed.map(({ object }) => object),
      );
      if (removed.length > 0) await db.write([forgetStrays(removed)]);
      keepsSome ||= removed.length < doomed.length;
      after = doomed.length < REMOVALS_AT_A_TIME ? null : (doomed.at(-1) ?? null);
      if (after === null) {
        const isClean = !keepsSome;
        keepsSome = false;
        return isClean ? backoff.recordSuccess() : backoff.recordFailure();
      }
      if (removed.length === 0) return backoff.recordFailure();
    }
  };
}

async function removeAll(
  { objects }: Pick<OffloadDeps, "objects">,
  names: readonly string[],
): Promise<string[]> {
  const removed: string[] = [];
  await Promise.all(
    names.map(async (name) => {
      try {
        await objects.remove(name);
        removed.push(name);
      } catch (error) {
        log("sweep").error("an object could not be removed", { error: String(error) });
      }
    }),
  );
  return removed;
}
