import { expect, test } from "bun:test";
import { namedWait } from "../../../../src/mail/bounces/named-wait.ts";

const [MINUTE, HOUR] = [60_000, 3_600_000];

test.each<[reply: string, ms: number | null, exact: boolean]>([
  ["try again in 300 seconds", 300_000, true],
  ["greylisted for 5 minutes", 5 * MINUTE, true],
  ["try again in 1 day", 24 * HOUR, true],
  ["try again in 25 hours", 24 * HOUR, true],
  ["come back in 00:05:30", 5 * MINUTE + 30_000, true],
  ["come back in 02:00:00", 2 * HOUR, true],
  ["300 seconds remaining", 300_000, true],
  ["wait an hour", HOUR, true],
  ["try again in a few minutes", 3 * MINUTE, true],
  ["limit of 50 messages per hour", HOUR, false],
  ["too many messages in 15 minutes", 15 * MINUTE, false],
  ["too many messages in 23 hours", 23 * HOUR, false],
  ["too many messages in 24 hours", 4 * HOUR, false],
  ["hourly limit", HOUR, false],
  ["daily limit", 4 * HOUR, false],
  ["try again later", null, false],
])("the reply %j names a wait of %p ms", (reply, ms, exact) => {
  expect(namedWait(reply)).toEqual(ms === null ? null : { ms, exact });
});
