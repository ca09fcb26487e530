import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventsOf } from "../../src/flows/webhooks/announce.ts";
import { Tail } from "../../src/flows/live/tail.ts";
import {
  newestEvent,
  RENEWAL_MS,
  RESUME_MS,
  resumeAfter,
  trimEventLog,
  watch,
} from "../../src/flows/live/watch.ts";
import { insertEvents } from "../../src/store/events/events.ts";
import { listLogged, watchedUntil } from "../../src/store/events/event-log.ts";
import { type Lists, message, openLists } from "../support/lists.ts";
import { manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const setUp = async () => {
  const senderId = await lists.project();
  const clock = manualClock();
  const deps = { db: lists.db, clock };
  const sent = message(senderId);
  await lists.store([sent]);
  const happen = async (): Promise<string> => {
    const [event] = eventsOf(clock, senderId, [{ messageId: sent.id, type: "open", email: null }]);
    if (event === undefined) throw new Error("no event");
    await lists.db.write([insertEvents([event])]);
    return event.id;
  };
  const logged = async () => (await listLogged(lists.db, senderId, 0, 100)).map(({ event }) => event?.id);
  return { senderId, clock, deps, happen, logged, sent };
};

test("events are logged from the watch on, and of other projects none", async () => {
  const { senderId, deps, happen, logged } = await setUp();
  const other = await setUp();
  await happen();
  const position = await watch(deps, senderId);
  const ids = [await happen(), await happen()];
  await other.happen();
  expect(await logged()).toEqual(ids);
  expect(await other.logged()).toEqual([]);
  expect((await listLogged(lists.db, senderId, position, 1))[0]?.event?.id).toBe(ids[0] ?? "");
});

test("a project stays watched while a client follows it, and for an hour after that", async () => {
  const { senderId, clock, deps, happen } = await setUp();
  const trim = trimEventLog(deps);
  const tail = new Tail(deps, false);
  const position = await watch(deps, senderId);
  const leave = tail.join(senderId, { position, take: () => undefined });
  for (let hours = 0; hours < 3; hours += RENEWAL_MS / RESUME_MS) {
    clock.advance(RENEWAL_MS);
    await until(async () => (await watchedUntil(lists.db, senderId)) > clock.now() + RESUME_MS);
    await trim();
  }
  leave();
  const seen = await happen();
  clock.advance(RESUME_MS);
  await trim();
  const next = await happen();
  const place = (await resumeAfter(deps, senderId, seen)) ?? Number.NaN;
  expect((await listLogged(lists.db, senderId, place, 10)).map(({ event }) => event?.id)).toEqual([next]);
  clock.advance(RESUME_MS);
  await trim();
  expect(await watchedUntil(lists.db, senderId)).toBe(0);
  expect(await resumeAfter(deps, senderId, seen)).toBeNull();
  tail.close();
});

test("the newest event is known while a stream may resume after it", async () => {
  const { senderId, clock, deps, happen } = await setUp();
  const other = await setUp();
  await happen();
  expect(await newestEvent(deps, senderId)).toBeNull();
  await watch(deps, senderId);
  await watch(other.deps, other.senderId);
  await happen();
  const newest = await happen();
  await other.happen();
  expect(await newestEvent(deps, senderId)).toBe(newest);
  clock.advance(RESUME_MS);
  expect(await newestEvent(deps, senderId)).toBe(newest);
  clock.advance(1);
  expect(await newestEvent(deps, senderId)).toBeNull();
});

test("no event is the newest one after the watch has ended", async () => {
  const { senderId, clock, deps, happen } = await setUp();
  await watch(deps, senderId);
  clock.advance(RESUME_MS + 2 * RENEWAL_MS - 1);
  const newest = await happen();
  expect(await newestEvent(deps, senderId)).toBe(newest);
  clock.advance(1);
  // Later events would not be logged.
  expect(await newestEvent(deps, senderId)).toBeNull();
});

test("the newest entry stays, so that no number is used twice", async () => {
  const { senderId, clock, deps, happen, logged } = await setUp();
  await watch(deps, senderId);
  await happen();
  const newest = await happen();
  clock.advance(3 * RESUME_MS);
  await trimEventLog(deps)();
  expect(await logged()).toEqual([newest]);
});

test("an event that retention has removed is passed over", async () => {
  const { senderId, deps, happen, logged, sent } = await setUp();
  await watch(deps, senderId);
  const gone = await happen();
  await lists.db.write([
    { sql: "DELETE FROM events WHERE message_id = ? AND id = ?", args: [sent.id, gone] },
  ]);
  const kept = await happen();
  expect(await logged()).toEqual([undefined, kept]);
});

test("a client that joins a project with others is handed what came before it, once each", async () => {
  const { senderId, deps, happen } = await setUp();
  const tail = new Tail(deps, false);
  const position = await watch(deps, senderId);
  const seen: [string[], string[]] = [[], []];
  const follower = (index: 0 | 1) => ({
    position,
    take(this: { position: number }, entries: readonly { seq: number; event: { id: string } | null }[]) {
      for (const { seq, event } of entries)
        if (seq > this.position && event !== null) seen[index].push(event.id);
    },
  });
  tail.join(senderId, follower(0));
  const ids = [await happen()];
  tail.wake();
  await until(() => seen[0].length === 1);
  tail.join(senderId, follower(1));
  ids.push(await happen());
  tail.wake();
  await until(() => seen[0].length === 2 && seen[1].length === 2);
  expect(seen).toEqual([ids, ids]);
  tail.close();
});
