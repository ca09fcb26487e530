import { randomBase62 } from "../../core/ids.ts";
import type { Clock } from "../../core/clock.ts";
import { HOUR_MS } from "../../core/time-units.ts";
import { log } from "../../log.ts";
import type { ObjectStore } from "../../net/object-store.ts";
import type { Db } from "../../store/engine/client.ts";
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
  placeInObject,
  storedBytes,
} from "../../store/contents/content-objects.ts";
import { createPatience } from "./patience.ts";

export interface OffloadDeps {
  db: Db;
  clock: Clock;
  objects: ObjectStore;
  /** What the names of our objects begin with: empty, or ends with a slash. */
  prefix: string;
}

/** A content is moved once it is so old, in milliseconds: whoever wrote it is likely to read it at once, to send it or to push it. */
export const MOVED_AFTER_MS = 10_000;
/** Contents moved at a time. */
const CONTENTS_AT_A_TIME = 8;
/** Those of no more octets are small. */
const SMALL_OCTETS = 256 * 1024;
/** Such rounds of one turn. */
const ROUNDS_PER_TURN = 16;
/** An upload is given up by others so long after it began, in milliseconds: its request has ended by then. */
export const UPLOAD_LOST_MS = HOUR_MS;
/** Objects removed at a time, and those that are given up in one write. */
const REMOVALS_AT_A_TIME = 8;
const UNUSED_PER_TURN = 200;
/** Random characters that set apart two objects of the same bytes. */
const SUFFIX_CHARS = 16;

/**
 * The chore that moves contents out of the database into the object store. An accept never waits for it: contents are
 * committed to the database first, and stay there while the store is out of reach.
 *
 * The name of an object is noted before it is put, and one write then lets the content be that object. A process that
 * dies in between leaves a note, by which the object is removed later; never a content without its bytes.
 */
export function offloadContents(deps: OffloadDeps): () => Promise<void> {
  const patience = createPatience(deps.clock);
  let after = 0;
  return async () => {
    if (!patience.ready()) return;
    for (let round = 0; round < ROUNDS_PER_TURN; round++) {
      const before = deps.clock.now() - MOVED_AFTER_MS;
      const contents = await movableContents(deps.db, after, before, CONTENTS_AT_A_TIME);
      const moved = await moveAll(deps, contents);
      after = contents.length < CONTENTS_AT_A_TIME ? 0 : (contents.at(-1)?.id ?? 0);
      if (moved > 0) patience.worked();
      else if (contents.length > 0) return patience.failed();
      if (after === 0) return;
    }
  };
}

/** How many of them could be moved. Small ones go side by side, large ones one by one: all of one is in memory. */
async function moveAll(deps: OffloadDeps, contents: readonly MovableContent[]): Promise<number> {
  const moved = await Promise.all(
    contents.filter(({ size }) => size <= SMALL_OCTETS).map((content) => move(deps, content)),
  );
  for (const content of contents) if (content.size > SMALL_OCTETS) moved.push(await move(deps, content));
  return moved.filter(Boolean).length;
}

/** Moves one content, or finds that it is not there any more. False where the store did not take it. */
async function move(deps: OffloadDeps, content: MovableContent): Promise<boolean> {
  const { db, clock, objects, prefix } = deps;
  const bytes = await storedBytes(db, content);
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
  const [placed] = await db.write(placeInObject(content, object));
  // Gone, or moved by another process since it was read: what was put is nobody's.
  if (placed?.changes !== 1) await db.write([doomStray(object)]);
  return true;
}

/** The chore that removes from the object store what nobody names any more, and what an upload that died has left. */
export function removeObjects(deps: Pick<OffloadDeps, "db" | "clock" | "objects">): () => Promise<void> {
  const { db, clock } = deps;
  const patience = createPatience(clock);
  // The store may hold on to single objects for good: those behind them have their turn all the same.
  let after: DoomedObject | null = null;
  /** Whether it has held on to some of this walk over all of them: those are asked for ever more seldom. */
  let keepsSome = false;
  return async () => {
    const now = clock.now();
    await dropUnusedObjects(db, now, UNUSED_PER_TURN);
    await db.write((await lostStrays(db, now - UPLOAD_LOST_MS, UNUSED_PER_TURN)).map(doomStray));
    if (!patience.ready()) return;
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
        return isClean ? patience.worked() : patience.failed();
      }
      if (removed.length === 0) return patience.failed();
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
