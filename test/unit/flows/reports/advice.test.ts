import { describe, expect, test } from "bun:test";
import type { DmarcPolicy } from "../../../../src/core/domains/dmarc-policies.ts";
import {
  advise,
  MAX_UNKNOWN_SOURCES,
  MIN_FAILED,
  MIN_MESSAGES,
  nextPolicy,
} from "../../../../src/flows/reports/advice.ts";
import type { SourceDay } from "../../../../src/store/domains/reports.ts";

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 10, 28, 12);
const [OURS, RELAY, FORGER] = ["192.0.2.10", "192.0.2.20", "203.0.113.9"];

function mail(daysAgo: number, source: string, messages: number, failed = 0): SourceDay {
  return { day: new Date(NOW - daysAgo * DAY_MS).toISOString().slice(0, 10), source, messages, failed };
}

/** Mail of each day from the first to the last, counted back from today. */
function daily(first: number, last: number, source = OURS, messages = 50, failed = 0): SourceDay[] {
  return Array.from({ length: first - last + 1 }, (_, at) => mail(first - at, source, messages, failed));
}

function adviceOn(days: readonly SourceDay[], now: DmarcPolicy | null = "none") {
  const sorted = days.toSorted((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0));
  return advise(sorted, { now, ownIps: [OURS], at: NOW });
}

describe("the safe policy", () => {
  /** Addresses of a relay, none of which sends a tenth of the mail. */
  const many = Array.from({ length: 11 }, (_, at) => `198.51.100.${at}`);
  const rows: [what: string, days: SourceDay[], now: DmarcPolicy | null, safe: DmarcPolicy][] = [
    ["without reports: the one there is", [], "quarantine", "quarantine"],
    ["without reports and policy: none", [], null, "none"],
    ["after 13 days: none", daily(13, 1), "none", "none"],
    ["after 14 days: quarantine", daily(14, 1), "none", "quarantine"],
    ["after 27 days: quarantine", daily(27, 1), "none", "quarantine"],
    ["after 28 days: reject", daily(28, 1), "none", "reject"],
    ["after 14 days with six reports: none", [...daily(14, 13), ...daily(4, 1)], "none", "none"],
    [
      "after 14 days with seven reports: quarantine",
      [...daily(14, 13), ...daily(5, 1)],
      "none",
      "quarantine",
    ],
    [
      "after too few messages: the one there is",
      [...daily(20, 1, OURS, 1), mail(1, RELAY, MIN_MESSAGES - 21)],
      "none",
      "none",
    ],
    [
      "after just enough messages: quarantine",
      [...daily(20, 1, OURS, 1), mail(1, RELAY, MIN_MESSAGES - 20)],
      "none",
      "quarantine",
    ],
    ["never less than the one there is", daily(5, 1), "reject", "reject"],
    [
      "after a failure of ours: none",
      [...daily(28, 1), mail(1, OURS, MIN_FAILED, MIN_FAILED)],
      "reject",
      "none",
    ],
    [
      "after a failure of a few messages: as before",
      [...daily(28, 1), mail(1, OURS, 9, MIN_FAILED - 1)],
      "none",
      "reject",
    ],
    [
      "after a failure of two in a hundred: as before",
      [...daily(28, 2), mail(1, OURS, 1000, 20)],
      "none",
      "reject",
    ],
    [
      "after a failure of more than two in a hundred: none",
      [...daily(28, 2), mail(1, OURS, 1000, 21)],
      "reject",
      "none",
    ],
    [
      "after a failure of a source that used to pass: none",
      [...daily(28, 2, RELAY), mail(1, RELAY, 50, 50)],
      "reject",
      "none",
    ],
    [
      "after a failure of a relay's many addresses: none",
      [...many.flatMap((ip) => daily(28, 2, ip, 10)), ...many.map((ip) => mail(1, ip, 10, 10))],
      "reject",
      "none",
    ],
    [
      "while a forger shares the address of a forwarder: as before",
      [...daily(28, 1), ...daily(28, 1, RELAY, 3), mail(1, RELAY, 40, 40)],
      "reject",
      "reject",
    ],
    ["13 days after a failure: none", [...daily(28, 1), mail(13, OURS, 50, 50)], "quarantine", "none"],
    [
      "14 days after a failure, with 13 good ones: none",
      [...daily(28, 1), mail(14, OURS, 50, 50)],
      "none",
      "none",
    ],
    ["15 days after a failure: quarantine", [...daily(28, 1), mail(15, OURS, 50, 50)], "none", "quarantine"],
    [
      "while a forger sends one in twenty: as before",
      [...daily(28, 1, OURS, 95), ...daily(28, 1, FORGER, 5, 5)],
      "none",
      "reject",
    ],
    [
      "while a forger sends more: the one there is",
      [...daily(28, 1, OURS, 94), ...daily(28, 1, FORGER, 6, 6)],
      "none",
      "none",
    ],
    [
      "while a forger sends nearly all: still the one there is",
      [...daily(28, 1, OURS, 5), ...daily(28, 1, FORGER, 995, 995)],
      "reject",
      "reject",
    ],
  ];
  test.each(rows)("the safe policy %s", (_what, days, now, safe) => {
    expect(adviceOn(days, now)).toMatchObject({ now, safe });
  });

  test("the safe policy has its reasons in words", () => {
    expect(adviceOn([]).reasons).toEqual(["No report that counts is about the last 30 days."]);
    expect(adviceOn(daily(14, 1)).reasons).toEqual([
      "Of 700 messages from known sources, 100 % passed DMARC.",
      "The policy reject needs 28 days without trouble, 14 of them with reports. So far there are 14 days, 14 with reports.",
    ]);
    expect(adviceOn([...daily(9, 1), mail(1, FORGER, 50, 50)]).reasons).toEqual([
      "Of 450 messages from known sources, 100 % passed DMARC.",
      "10 % of the messages come from unknown sources. Sign their mail if they are yours.",
    ]);
    expect(adviceOn([mail(2, OURS, 30, 12)]).reasons).toEqual([
      "On 2026-11-26, 12 of 30 messages from known sources failed DMARC.",
    ]);
  });

  test("the safe policy has the first day without trouble", () => {
    expect(adviceOn([...daily(20, 1), mail(10, OURS, 90, 50)]).since).toBe(Date.UTC(2026, 10, 19));
    expect(adviceOn([mail(1, OURS, 90, 50)]).since).toBeNull();
  });

  test("the safe policy names so many unknown sources, the largest first", () => {
    const forgers = Array.from({ length: MAX_UNKNOWN_SOURCES + 1 }, (_, at) =>
      mail(1, `203.0.113.${at}`, at + 1, at + 1),
    );
    const { unknownSources } = adviceOn(forgers);
    expect(unknownSources).toHaveLength(MAX_UNKNOWN_SOURCES);
    expect(unknownSources[0]).toEqual({
      source: `203.0.113.${MAX_UNKNOWN_SOURCES}`,
      messages: MAX_UNKNOWN_SOURCES + 1,
    });
  });
});

describe("a move", () => {
  const rows: [
    now: DmarcPolicy | null,
    safe: DmarcPolicy,
    daysSinceMove: number | null,
    next: DmarcPolicy | null,
  ][] = [
    ["none", "none", null, null],
    ["none", "reject", null, "quarantine"],
    [null, "quarantine", null, "quarantine"],
    ["none", "quarantine", 13, null],
    ["quarantine", "reject", 13, null],
    ["quarantine", "reject", 14, "reject"],
    ["quarantine", "quarantine", 20, null],
    ["reject", "none", 0, "none"],
    ["quarantine", "none", 0, "none"],
  ];
  test.each(rows)("a move from %p with %s safe, %p days after the last one: %p", (now, safe, days, next) => {
    const advice = { now, safe, since: null, reasons: [], unknownSources: [] };
    expect(nextPolicy(advice, days === null ? null : NOW - days * DAY_MS, NOW)).toBe(next);
  });
});
