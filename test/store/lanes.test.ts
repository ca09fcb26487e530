import { afterEach, beforeEach, expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time/units.ts";
import { Lanes, MAX_LANES } from "../../src/flows/lanes/lanes.ts";
import type { LaneSign } from "../../src/flows/lanes/sign.ts";
import {
  addLaneFigures,
  deleteOldLanes,
  laneFigures,
  listLanes,
  saveLane,
} from "../../src/store/installation/lanes.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const NOON = 20_000 * DAY_MS + DAY_MS / 2;
const BLOCKED: LaneSign = { kind: "blocked", category: "reputation", namedMs: null };
/** Maximum number of lanes with a stored state. */
const MAX_STORED = 10_000;

let database: TestDatabase;
let clock: ManualClock;
beforeEach(async () => {
  database = await testDatabase();
  clock = manualClock(NOON);
});
afterEach(() => database.remove());

function aProcess(instanceId: string): Lanes {
  const usual = { connections: 5, messages: 100, rate: 0 };
  return new Lanes({ db: database.db, clock, instanceId, overrides: new Map(), usual });
}

test("as many made-up lanes as a process remembers push out no provider, no relay, and none with trouble", () => {
  const lanes = aProcess("one");
  const google = lanes.named("google");
  const relay = lanes.ofRelay("rte_1", 14);
  const steady = lanes.ofHosts(["steady.test"], "");
  const slowed = lanes.ofHosts(["slowed.test"], "");
  slowed.note(BLOCKED, "550 blocked", clock.now());
  for (let nth = 0; nth <= MAX_LANES; nth++) lanes.ofHosts([`mx.d${nth}.test`], "");
  expect(lanes.named("google")).toBe(google);
  expect(lanes.ofRelay("rte_1", 14)).toBe(relay);
  expect(lanes.ofHosts(["slowed.test"], "")).toBe(slowed);
  expect(lanes.ofHosts(["steady.test"], "")).not.toBe(steady);
});

test("newer made-up lanes, one past what is stored, push the state of a provider out of no process", async () => {
  const { db } = database;
  for (const name of ["google", "slowed.test"]) {
    const lane = aProcess("one").named(name);
    for (let nth = 0; nth < 3; nth++)
      await db.write(lane.note(BLOCKED, "550 blocked", clock.now()).statements);
  }
  clock.advance(DAY_MS);
  const now = clock.now();
  const row = { state: "{}", version: 1, changedBy: "other", changedAt: now, rank: 0 };
  const names = Array.from({ length: MAX_STORED }, (_, nth) => `mx.d${nth}.test`);
  await db.write(names.map((name) => saveLane({ ...row, name })));
  const other = aProcess("two");
  const found = [other.named("google"), other.named("slowed.test")];
  await other.refresh();
  expect(found.map(({ word }) => word)).toEqual(["blocked", "blocked"]);
  await db.write(deleteOldLanes(now, Math.floor(now / DAY_MS)));
  const kept = (await listLanes(db)).map(({ name }) => name);
  expect(kept).toHaveLength(MAX_STORED);
  expect(kept.slice(0, 2)).toEqual(["google", "slowed.test"]);
});

test("the figures of made-up lanes, one past what is shown, hide none of a busy provider", async () => {
  const { db } = database;
  const counts = { accepted: 0, deferred: 1, refused: 0, waiting: 0 };
  const names = Array.from({ length: MAX_STORED }, (_, nth) => `a${nth}.test`);
  await db.write(names.map((lane) => addLaneFigures(1, "one", { lane, ...counts })));
  await db.write([addLaneFigures(1, "one", { lane: "yahoo", ...counts, accepted: 100 })]);
  const figures = await laneFigures(db, 1);
  expect(figures).toHaveLength(MAX_STORED);
  expect(figures[0]).toMatchObject({ lane: "yahoo", accepted: 100 });
});
