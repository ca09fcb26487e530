import { expect, test } from "bun:test";
import {
  earlyReports,
  REREAD_DELAYS_MS,
  MAX_WAITING_REPORTS,
} from "../../../../src/flows/deliver/early-reports.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const SECOND = REREAD_DELAYS_MS.reduce((sum, ms) => sum + ms);

/** Answers "early" as long as the test says, and counts its calls. */
function record() {
  const looks = { early: true, count: 0 };
  const look = async (): Promise<string> => {
    looks.count++;
    return looks.early ? "early" : "taken";
  };
  return { looks, look };
}

/** Advances time pause by pause, so that waiting reports look again in between. */
async function pass(clock: ReturnType<typeof manualClock>, pauses: readonly number[] = REREAD_DELAYS_MS) {
  for (const ms of pauses) {
    clock.advance(ms);
    await Bun.sleep(0);
  }
}

test("the waits add up to one second", () => {
  expect(SECOND).toBe(1000);
});

test("a report waits until its delivery is recorded", async () => {
  const clock = manualClock();
  const { looks, look } = record();
  const waiting = earlyReports(clock).wait("early", look);
  await pass(clock, REREAD_DELAYS_MS.slice(0, 2));
  looks.early = false;
  await pass(clock, REREAD_DELAYS_MS.slice(2, 3));
  expect(await waiting).toBe("taken");
  expect(looks.count).toBe(3);
  expect(clock.pending()).toBe(0);
});

test("a report whose delivery is not recorded stays early, and leaves nothing behind in memory", async () => {
  const clock = manualClock();
  const { looks, look } = record();
  const waiting = earlyReports(clock).wait("early", look);
  await pass(clock);
  expect(await waiting).toBe("early");
  expect(looks.count).toBe(REREAD_DELAYS_MS.length);
  expect(clock.pending()).toBe(0);
});

test("one report over the limit is early at once, and can wait after another has ended", async () => {
  const clock = manualClock();
  const { looks, look } = record();
  const reports = earlyReports(clock);
  const waiting = Array.from({ length: MAX_WAITING_REPORTS }, () => reports.wait("early", look));
  expect(await reports.wait("early", look)).toBe("early");
  expect(looks.count).toBe(0);
  await pass(clock);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["early"]));
  const next = reports.wait("early", look);
  looks.early = false;
  await pass(clock);
  expect(await next).toBe("taken");
});

test("a report whose lookup fails frees its place", async () => {
  const clock = manualClock();
  const reports = earlyReports(clock);
  const failing = Array.from({ length: MAX_WAITING_REPORTS }, () =>
    reports.wait("early", () => Promise.reject(new Error("no database"))),
  );
  const failed = Promise.allSettled(failing);
  await pass(clock);
  expect((await failed).every(({ status }) => status === "rejected")).toBe(true);
  const next = reports.wait("early", async () => "taken");
  await pass(clock);
  expect(await next).toBe("taken");
});

test("a stop ends all waits with a last lookup and lets no new one begin", async () => {
  const clock = manualClock();
  const { looks, look } = record();
  const reports = earlyReports(clock);
  const waiting = reports.wait("early", look);
  reports.end();
  expect(await waiting).toBe("early");
  expect(looks.count).toBe(1);
  expect(await reports.wait("early", look)).toBe("early");
  expect(looks.count).toBe(1);
  expect(clock.pending()).toBe(0);
});
