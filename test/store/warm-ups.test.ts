import { afterEach, beforeEach, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import type { Lane } from "../../src/flows/lanes/lane.ts";
import { Lanes } from "../../src/flows/lanes/lanes.ts";
import { readLanes } from "../../src/flows/lanes/read-lanes.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { laneFigures } from "../../src/store/installation/lanes.ts";
import type { LaneSign } from "../../src/flows/lanes/sign.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const NEW = "203.0.113.6";
const LANE = `google@${NEW}`;
const DAYS = 30;
/** Messages that want to leave each day. */
const DEMAND = 120_000;
const NOON = 20_000 * DAY_MS + 12 * HOUR_MS;
const BLOCKED: LaneSign = { kind: "blocked", category: "reputation", namedMs: null };

let database: TestDatabase;
let clock: ManualClock;

beforeEach(async () => {
  database = await testDatabase();
  clock = manualClock(NOON);
});
afterEach(() => database.remove());

function aProcess(instanceId: string, first = NOON): Lanes {
  return new Lanes({
    db: database.db,
    clock,
    instanceId,
    overrides: new Map(),
    usual: { connections: 5, messages: 100, rate: 0 },
    warmUps: new Map([[NEW, Math.floor(first / DAY_MS)]]),
  });
}

async function look(lanes: Lanes): Promise<Lane> {
  const lane = lanes.named(LANE);
  await lanes.storeFigures(new Map());
  await lanes.refresh();
  return lane;
}

/** Sends until the lane takes no more. Returns how many it took, and leaves the rest to the overflow. */
function sendAll(lane: Lane, answer: (nth: number) => "accepted" | "deferred" = () => "accepted"): number {
  let sent = 0;
  while (sent < DEMAND && lane.opensInMs === 0) {
    const ended = lane.begin();
    if (answer(sent++) === "accepted") lane.noteAccepted(clock.now());
    else lane.count("deferred");
    ended();
  }
  return sent;
}

test("in 30 days a new address grows to 100,000 messages a day, repeats bad days, and the rest overflows", async () => {
  const lanes = aProcess("ins_one");
  const sent: number[] = [];
  for (let day = 1; day <= DAYS; day++) {
    const lane = await look(lanes);
    if (day === 4) sent.push(sendAll(lane, (nth) => (nth % 10 === 0 ? "deferred" : "accepted")));
    else if (day === 8) {
      lane.count("refused");
      const { statements } = lane.note(BLOCKED, "550 5.7.1 blocked", clock.now());
      await database.db.write(statements);
      sent.push(1 + sendAll(lane));
    } else if (day === 10) sent.push(0);
    else sent.push(sendAll(lane));
    await look(lanes);
    clock.advance(DAY_MS);
  }
  const steps = [50, 100, 250, 500, 500, 1000, 2000, 5000, 5000, 0, 10_000, 20_000, 40_000, 80_000, 100_000];
  expect(sent.slice(0, steps.length)).toEqual(steps);
  expect(sent.slice(steps.length)).toEqual(Array.from({ length: DAYS - steps.length }, () => DEMAND));
});

test("the processes of an installation share the cap of a day, and a new process continues it", async () => {
  const [one, two] = [aProcess("ins_one"), aProcess("ins_two")];
  const [first, second] = [await look(one), await look(two)];
  expect(sendAll(first)).toBe(50);
  await look(one);
  await look(two);
  expect(sendAll(second)).toBe(0);
  const restarted = aProcess("ins_three");
  expect(restarted.named(LANE).opensInMs).toBe(1000);
  const lane = await look(restarted);
  expect(sendAll(lane)).toBe(0);
  expect(lane.opensInMs).toBe(12 * HOUR_MS);
});

test("attempts before midnight count for the day before, even if they are stored after it", async () => {
  const lanes = aProcess("ins_one");
  const lane = await look(lanes);
  clock.advance(12 * HOUR_MS - 1);
  for (let sent = 0; sent < 20; sent++) lane.noteAccepted(clock.now());
  lane.count("refused");
  clock.advance(1);
  lane.noteAccepted(clock.now());
  await look(lanes);
  const today = Math.floor(clock.now() / DAY_MS);
  const figures = { lane: LANE, deferred: 0, waiting: 0 };
  expect(await laneFigures(database.db, today - 1)).toEqual([{ ...figures, accepted: 20, refused: 1 }]);
  expect(await laneFigures(database.db, today)).toEqual([{ ...figures, accepted: 1, refused: 0 }]);
  expect(sendAll(lane)).toBe(99);
});

test("attempts that could not be stored are stored the next time", async () => {
  let isFull = true;
  const write: Db["write"] = (statements) =>
    isFull ? Promise.reject(new Error("disk full")) : database.db.write(statements);
  const db = { ...database.db, write };
  const lanes = new Lanes({
    db,
    clock,
    instanceId: "ins_one",
    overrides: new Map(),
    usual: { connections: 5, messages: 100, rate: 0 },
  });
  lanes.named(LANE).noteAccepted(clock.now());
  await expect(lanes.storeFigures(new Map())).rejects.toThrow("disk full");
  isFull = false;
  lanes.named(LANE).noteAccepted(clock.now());
  await lanes.storeFigures(new Map());
  await lanes.storeFigures(new Map());
  expect(await laneFigures(database.db, Math.floor(clock.now() / DAY_MS))).toMatchObject([{ accepted: 2 }]);
});

test("a lane from which no message waits any more shows none", async () => {
  const lanes = aProcess("ins_one");
  await lanes.storeFigures(new Map([[lanes.named(LANE).name, 7]]));
  await lanes.storeFigures(new Map());
  const rows = await database.db.all("SELECT waiting FROM lane_figures", []);
  expect(rows).toEqual([{ waiting: 0 }]);
});

test("the lanes show how far a new address has come, until it is warm", async () => {
  const warmUps = new Map([[NEW, Math.floor(NOON / DAY_MS)]]);
  const reading = {
    db: database.db,
    clock,
    overrides: new Map(),
    warmUps,
    usual: { connections: 5, messages: 100, rate: 0 },
  };
  const shown = async () => (await readLanes(reading)).map(({ name, warmUp }) => [name, warmUp]);
  const lanes = aProcess("ins_one");
  const lane = await look(lanes);
  expect(await shown()).toEqual([[LANE, { day: 1, cap: 50, used: 0 }]]);
  sendAll(lane);
  await look(lanes);
  expect(await shown()).toEqual([[LANE, { day: 1, cap: 50, used: 50 }]]);
  clock.advance(DAY_MS);
  expect(await shown()).toEqual([[LANE, { day: 2, cap: 100, used: 0 }]]);
  await database.db.write([{ sql: "UPDATE warm_ups SET step = 12", args: [] }]);
  expect(await shown()).toEqual([]);
  warmUps.set(NEW, Math.floor(NOON / DAY_MS) + 5);
  expect(await shown()).toEqual([[LANE, { day: 0, cap: 0, used: 0 }]]);
  warmUps.clear();
  expect(await shown()).toEqual([]);
});

test("messages in flight count, so parallel deliveries stay within the cap", async () => {
  const lane = await look(aProcess("ins_one"));
  const ends: (() => void)[] = [];
  while (lane.opensInMs === 0) ends.push(lane.begin());
  expect(ends).toHaveLength(50);
  ends.pop()?.();
  expect(lane.opensInMs).toBe(0);
});

test("an address sends nothing to providers before its first day, and hosts of no provider have no cap", async () => {
  const lanes = aProcess("ins_one", NOON + 2 * DAY_MS);
  const lane = await look(lanes);
  expect(lane.opensInMs).toBe(1.5 * DAY_MS);
  expect(lanes.named(`mx.example.com@${NEW}`).opensInMs).toBe(0);
  expect(lanes.named("google@203.0.113.5").opensInMs).toBe(0);
});
