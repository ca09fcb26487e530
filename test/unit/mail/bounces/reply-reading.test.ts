import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { namedWait } from "../../../../src/mail/bounces/named-wait.ts";
import { effectRules, readReply } from "../../../../src/mail/bounces/reply-reading.ts";
import { cpuMs } from "../../../support/cpu-time.ts";
import { refusalFrom } from "../../../support/replies.ts";

const MINUTE_MS = 60_000;
const FIXTURE = join(import.meta.dir, "../../../fixtures/reply-effects.tsv");
const CORPUS = join(import.meta.dir, "../../../../../shared/corpora/replies/replies.tsv");

function rowsOf(file: string): string[][] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split("\t"));
}

describe("a reply asks of the sender what the table says", () => {
  test.each(rowsOf(FIXTURE).map((row): [string, string[]] => [`${row[0]}: ${row[6]}`, row]))(
    "%s",
    (_, row) => {
      const [, stage = "", kind = "", lane = "", who = "", minutes = "", reply = ""] = row;
      const read = readReply(refusalFrom(reply, stage));
      expect(`${read.outcome} ${read.category}`).toBe(kind);
      expect([read.laneEffect as string, read.who as string]).toEqual([lane, who]);
      expect(read.retryAfterMs).toBe(minutes === "-" ? null : Number(minutes) * MINUTE_MS);
    },
  );
});

describe("a text", () => {
  test.each([
    ["greylisted for 5 minutes", 300],
    ["please try again in 300 seconds", 300],
    ["try again in 5m", 300],
    ["greylisted, retry timeout: 240 sec", 240],
    ["greylisting in action, please come back in 00:10:00", 600],
    ["deferred, 45 seconds remaining", 45],
    ["please wait an hour and try again", 3600],
    ["try again in a few minutes", 180],
    ["wait 2 hours", 7200],
    ["try again in 90 days", 86_400],
  ])("a reply that says %j names a wait of %d seconds", (text, seconds) => {
    expect(namedWait(text)).toEqual({ ms: seconds * 1000, exact: true });
  });

  test.each([
    ["too many recipients this hour", 3600],
    ["100 messages per hour", 3600],
    ["more than 50 mails in 15 minutes", 900],
    ["the daily limit is reached", 14_400],
  ])("a reply that says %j names a period, of which the wait is %d seconds", (text, seconds) => {
    expect(namedWait(text)).toEqual({ ms: seconds * 1000, exact: false });
  });

  test.each(["try again later", "error 42", "queued for 203.0.113.25 as 4500 bytes", ""])(
    "that says %j names no wait",
    (text) => {
      expect(namedWait(text)).toBeNull();
    },
  );

  test.each(["try again in ", "wait ", "1", "per ", "greylisted for 5 "])(
    "of %j repeated is searched for a wait in linear time",
    (piece) => {
      const text = piece.repeat(2048 / piece.length);
      const started = cpuMs();
      for (let time = 0; time < 10; time++) namedWait(text);
      expect(cpuMs() - started).toBeLessThan(50);
    },
  );
});

test("a wait in the text counts instead of the provider's own, and the period of a limit only if it is longer", () => {
  const read = (text: string) =>
    readReply({ code: 421, enhanced: "4.7.0", text, stage: "mail" }).retryAfterMs;
  expect(read("Rate limit exceeded")).toBe(15 * MINUTE_MS);
  expect(read("Rate limit exceeded, try again in 2 minutes")).toBe(2 * MINUTE_MS);
  expect(read("Rate limit exceeded: 100 messages per minute")).toBe(15 * MINUTE_MS);
  expect(read("Rate limit exceeded: 100 messages per hour")).toBe(60 * MINUTE_MS);
});

test("a number in a reply about something else is no wait", () => {
  const full = { code: 452, enhanced: "4.2.2", text: "Mailbox full, wait 20 days", stage: "rcpt" };
  expect(readReply(full).retryAfterMs).toBe(0);
});

test("a host that is refused for its name before it names a sender is blocked, and one without a reason is not", () => {
  const refusal = { code: 554, enhanced: null, text: "no PTR record found", stage: "connect" };
  expect(readReply(refusal)).toMatchObject({ who: "us", laneEffect: "block" });
  expect(readReply({ ...refusal, stage: "final" })).toMatchObject({ who: "us", laneEffect: "none" });
  const unexplained = { ...refusal, text: "no service for you" };
  expect(readReply(unexplained)).toMatchObject({ who: "us", laneEffect: "none" });
});

test("each rule about effects has patterns and sets something", () => {
  expect(
    effectRules().filter(({ patterns, sets }) => patterns.length === 0 || Object.keys(sets).length === 0),
  ).toEqual([]);
});

/** Rates that the reading of replies must reach, percent. */
const GOALS = { outcome: 100, category: 95, who: 90, retry: 95, lane: 100 };

test.skipIf(!existsSync(CORPUS))(
  "replies of large providers are read (skipped if the folder shared/corpora/replies is absent)",
  () => {
    const right = { outcome: 0, category: 0, who: 0, retry: 0, lane: 0 };
    const rows = rowsOf(CORPUS);
    for (const row of rows) {
      const [, , stage = "", , outcome, categories = "", , lane, firstRetry, who, , reply = ""] = row;
      const read = readReply(refusalFrom(reply, stage));
      const waitMs = Number(firstRetry) * MINUTE_MS;
      right.outcome += Number(read.outcome === outcome);
      right.category += Number(categories.split(" ").includes(read.category));
      right.who += Number(read.who === who);
      right.retry += Number(outcome !== "deferred" || (read.retryAfterMs ?? 0) >= waitMs);
      right.lane += Number(lane === "none" || read.laneEffect !== "none");
    }
    const missed = Object.entries(GOALS).filter(
      ([name, goal]) => right[name as keyof typeof right] * 100 < goal * rows.length,
    );
    expect(missed).toEqual([]);
  },
);
