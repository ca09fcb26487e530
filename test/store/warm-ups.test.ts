import { afterEach, beforeEach, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import type { Lane } from "../../src/flows/lanes/lane.ts";
import { Lanes } from "../../src/flows/lanes/lanes.ts";
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
    ...{ db: database.db, clock, instanceId, overrides: new Map() },
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
