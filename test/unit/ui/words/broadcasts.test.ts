import { describe, expect, test } from "bun:test";
import type { BroadcastSummary } from "../../../../src/ui/api/types.ts";
import {
  resultsOf,
  shortResults,
  stateText,
  withoutGaps,
} from "../../../../src/ui/pages/broadcasts/words.ts";

const at = "2026-05-01T09:00:00.000Z";
const COUNTS = {
  audience: 4000,
  recipients: 1100,
  skipped: 100,
  sent: 0,
  delivered: 1000,
  bounced: 11,
  complained: 1,
  failed: 0,
  opened: 410,
  clicked: 35,
  unsubscribed: 2,
};

function broadcast(
  status: BroadcastSummary["status"],
  counts: Partial<typeof COUNTS> = {},
): BroadcastSummary {
  return {
    id: "bro_1",
    name: "May letter",
    status,
    topicId: "top_1",
    segmentId: null,
    from: { email: "news@example.com" },
    replyTo: [],
    subject: "Hi",
    templateId: null,
    scheduledAt: null,
    ratePerHour: null,
    routeIds: [],
    abTest: null,
    counts: { ...COUNTS, ...counts },
    problem: null,
    startedAt: at,
    endedAt: "2026-05-01T09:12:00.000Z",
    createdAt: at,
    updatedAt: at,
  };
}

describe("the state of a broadcast in a sentence", () => {
  for (const [status, text] of [
    ["draft", "It was not sent yet."],
    ["scheduled", "It begins at its time."],
    ["sending", "1,200 of 4,000 contacts so far."],
    ["paused", "It waits after 1,200 of 4,000 contacts."],
    ["canceled", "It ended after 1,200 of 4,000 contacts."],
    ["sent", "1,100 messages in 12 min."],
  ] as const)
    test(status, () => expect(stateText(broadcast(status))).toBe(text));
});

test("a broadcast that waits for the result of a test says so", () => {
  const test = {
    subject: "B",
    share: 0.2,
    waitMinutes: 60,
    by: "opens",
    decideAt: at,
    decision: null,
  } as const;
  expect(stateText({ ...broadcast("sending"), abTest: test })).toBe(
    "1,200 of 4,000 contacts got the test. The others wait for its result.",
  );
});

test("what readers did is a share of the delivered messages, and what failed one of all", () => {
  const shares = Object.fromEntries(resultsOf(broadcast("sent")).map(({ name, share }) => [name, share]));
  expect(shares).toEqual({
    Messages: "100 left out",
    Delivered: "91 %",
    Opened: "41 %",
    Clicked: "3.5 %",
    Unsubscribed: "0.20 %",
    Bounced: "1.0 %",
    Complained: "0.10 %",
    Failed: "0 %",
  });
  expect(shortResults(broadcast("sent"))).toBe("91 % delivered, 41 % opened, 3.5 % clicked");
});

test("nothing has a share while no message was made", () => {
  expect(shortResults(broadcast("sending", { recipients: 0, delivered: 0, skipped: 0 }))).toBe("");
});

test("hours in which nothing happened are points of the chart", () => {
  const { audience: _, recipients: __, skipped: ___, ...figures } = COUNTS;
  const data = ["2026-05-01T09:00:00.000Z", "2026-05-01T12:00:00.000Z"].map((one) => ({
    ...figures,
    at: one,
  }));
  expect(withoutGaps(data, 3_600_000).map(({ delivered }) => delivered)).toEqual([1000, 0, 0, 1000]);
  expect(withoutGaps([...data, { ...figures, at: "2027-05-01T12:00:00.000Z" }], 3_600_000)).toHaveLength(
    1000,
  );
});
