import { actingAs, NOBODY } from "../../core/actor.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { newId } from "../../core/ids.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { UNUSED_KEPT_MS } from "../../store/contents/contents.ts";
import type { Statement } from "../../store/engine/client.ts";
import { raiseNotice } from "../../store/notices/notices.ts";
import { giveBackAny, freePages } from "../../store/installation/free-pages.ts";
import { erasedForm } from "../../store/projects/erased-addresses.ts";
import {
  eraseAround,
  eraseFromAnswers,
  eraseFromAudit,
  eraseFromLists,
  eraseFromWritten,
  messagesNaming,
  WRITTEN,
} from "../../store/erasures/erased-rows.ts";
import type { RowPlace } from "../../store/engine/place.ts";
import {
  contentsAreGoing,
  type Erasure,
  type ErasureCounts,
  nextProject,
  PASSED,
  progressErasure,
  runningGuard,
  runningErasures,
} from "../../store/erasures/erasures.ts";
import { eraseFromParts } from "../../store/imports/parts.ts";
import { deleteAtRest, MESSAGES_PER_WRITE } from "./delete-now.ts";
import type { DeletionDeps } from "./delete-messages.ts";
import { PAGES_PER_WRITE } from "./removals.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";

// A person who asks to be erased expects that no octet is left. An operator who has to promise that would miss it. Deleting
// messages one by one was tried first: it leaves contacts, stored answers, the audit trail, and freed pages of the file.

export interface EraseDeps extends DeletionDeps {
  /** Opens the address of a request. */
  boxKey: Key;
  /** True if the database is a file of ours, whose free pages can be given back. */
  isFile: boolean;
}

/** Requests that a turn reads, and those that it works on. Paused ones must not keep later ones from their turn. */
const RUNNING_READ = 1000;
const ERASURES_PER_TURN = 20;
/** Messages read at a time, and such reads of a turn: some milliseconds each. */
export const MESSAGES_PER_READ = 200;
const READS_PER_TURN = 20;
/** Rows of other lists read at a time, and the number of such reads for one project. */
const ROWS_PER_READ = 500;
const MAX_READS = 20_000;
/** Notes or drafts read at a time. A draft may have a megabyte. */
const WRITTEN_PER_READ = 100;
/** Writes of a turn that give back pages. */
const PAGE_WRITES_PER_TURN = 32;
/** Pause before the next pass over messages of which some could not go yet, milliseconds. */
export const BLOCKED_PAUSE_MS = MINUTE_MS;

/** Makes the chore that erases addresses, in steps that any process may go on with. */
export function eraseAddresses(deps: EraseDeps): () => Promise<void> {
  const paused = new Map<string, number>();
  return async () => {
    const running = await runningErasures(deps.db, RUNNING_READ);
    const ids = new Set(running.map(({ id }) => id));
    for (const id of paused.keys()) if (!ids.has(id)) paused.delete(id);
    const due = running.filter(({ id }) => (paused.get(id) ?? 0) <= deps.clock.now());
    for (const erasure of due.slice(0, ERASURES_PER_TURN)) {
      // The audit trail has the request itself, not each row that goes with it.
      const waits = await actingAs(NOBODY, () => step(deps, erasure)).catch((error: unknown) => {
        log("sweep").error("an erasure failed", { erasure: erasure.id, error: String(error) });
        return true;
      });
      if (waits) paused.set(erasure.id, deps.clock.now() + BLOCKED_PAUSE_MS);
    }
  };
}

/** Continues a request. Returns true if it has to wait. */
async function step(deps: EraseDeps, erasure: Erasure): Promise<boolean> {
  if (erasure.projectAt !== PASSED) return pass(deps, erasure);
  await giveBack(deps, erasure);
  return false;
}

/** Continues the pass over the messages. Returns true at the end of one that had to leave some. */
async function pass(deps: EraseDeps, erasure: Erasure): Promise<boolean> {
  const { db, boxKey } = deps;
  const { id, accountId, senderId } = erasure;
  const key = unseal(boxKey, erasure.sealedEmail ?? "");
  let { projectAt, messageAt, blocked, counts } = erasure;
  for (let read = 0; read < READS_PER_TURN; read++) {
    if (projectAt === "") projectAt = senderId ?? (await nextProject(db, accountId, "")) ?? PASSED;
    const done = await eraseMessages(deps, projectAt, key, messageAt);
    counts = added(counts, { messages: done.deleted });
    blocked += done.blocked;
    messageAt = done.next ?? "";
    if (done.next === null) {
      // While mail waits, the lists say in plain words that the person is suppressed or has unsubscribed.
      if (blocked === 0) counts = added(counts, await eraseRest(deps, projectAt, key));
      projectAt = (senderId === null ? await nextProject(db, accountId, projectAt) : null) ?? PASSED;
    }
    if (projectAt === PASSED) break;
    await yieldToEventLoop();
  }
  const again = projectAt === PASSED && blocked > 0;
  const place = again ? { projectAt: "", messageAt: "", blocked: 0 } : { projectAt, messageAt, blocked };
  await db.write([progressErasure(id, { ...place, counts })]);
  return again;
}

/** Erases the next messages of a project. `next` is the place of the last; null: there are no more. */
async function eraseMessages(
  deps: EraseDeps,
  senderId: string,
  key: string,
  after: string,
): Promise<{ deleted: number; blocked: number; next: string | null }> {
  const read = await messagesNaming(deps.db, senderId, key, after, MESSAGES_PER_READ);
  const named = read.filter(({ isNamed }) => isNamed);
  const going = named.filter(({ isMoving }) => !isMoving);
  let [deleted, blocked] = [0, named.length - going.length];
  for (let at = 0; at < going.length; at += MESSAGES_PER_WRITE) {
    const some = going.slice(at, at + MESSAGES_PER_WRITE);
    if (await deleteAtRest(deps, some, eraseAround(key, some))) deleted += some.length;
    else blocked += some.length;
  }
  return { deleted, blocked, next: read.length < MESSAGES_PER_READ ? null : (read.at(-1)?.id ?? null) };
}

/** Erases the address from the lists of a project, and from what tells of its requests. */
async function eraseRest({ db }: EraseDeps, senderId: string, key: string): Promise<ErasureCounts> {
  const erased = await erasedForm(db, senderId, key);
  const [, contacts, , , suppressions] = await db.write(eraseFromLists(senderId, key, erased));
  for (const table of Object.keys(WRITTEN) as (keyof typeof WRITTEN)[])
    await toTheEnd<string>((after) =>
      eraseFromWritten(db, table, senderId, key, after ?? "", WRITTEN_PER_READ),
    );
  for (const erase of [eraseFromAnswers, eraseFromParts, eraseFromAudit])
    await toTheEnd<NonNullable<RowPlace>>((after) => erase(db, senderId, key, after, ROWS_PER_READ));
  return { contacts: contacts?.changes ?? 0, suppressions: suppressions?.changes ?? 0 };
}

/** Erases from the rows after each place, until a read returns null. */
async function toTheEnd<Place>(erase: (after: Place | null) => Promise<Place | null>): Promise<void> {
  let place: Place | null = null;
  for (let read = 0; read < MAX_READS; read++) {
    place = await erase(place);
    if (place === null) return;
    await yieldToEventLoop();
  }
}

/** Waits until the contents have gone, gives back the pages that were freed, and ends the request. */
async function giveBack({ db, clock, isFile }: EraseDeps, erasure: Erasure): Promise<void> {
  const { id, pagesLeft } = erasure;
  let left = pagesLeft;
  if (left === null) {
    if (await contentsAreGoing(db, clock.now() - UNUSED_KEPT_MS)) return;
    left = isFile ? await freePages(db) : 0;
  }
  for (let write = 0; write < PAGE_WRITES_PER_TURN && left > 0; write++) {
    const given = await giveBackAny(db, Math.min(left, PAGES_PER_WRITE));
    left = given === 0 ? 0 : left - given;
  }
  const end = { status: "done", sealedEmail: null, endedAt: clock.now() } as const;
  await db.write([
    ...(left === 0 ? [doneNotice(erasure, clock.now())] : []),
    progressErasure(id, { pagesLeft: left, ...(left === 0 ? end : {}) }),
  ]);
  if (left === 0) log("sweep").info("an address was erased", { erasure: id });
}

/** Tells people that an address is gone, without the address. If another process has ended the request, it told them. */
function doneNotice({ id, accountId, senderId }: Erasure, at: number): Statement {
  const about = { accountId, senderId, subjectId: id, subject: id, detail: null };
  const notice = { ...about, id: newId("ntc", at), kind: "erasure_done", at, once: true } as const;
  return raiseNotice(notice, runningGuard(id));
}

function added(counts: ErasureCounts, more: ErasureCounts): ErasureCounts {
  const names = new Set([...Object.keys(counts), ...Object.keys(more)]);
  return Object.fromEntries([...names].map((name) => [name, (counts[name] ?? 0) + (more[name] ?? 0)]));
}
