import { expect, test } from "bun:test";
import { snoozeTimes } from "../../../../src/ui/words/snooze.ts";

const HOUR = 3_600_000;
const local = (day: number, hour: number) => new Date(2026, 2, day, hour).getTime();
const names = (now: number) => snoozeTimes(now).map(({ name }) => name);

test.each([
  [
    "a Wednesday morning",
    local(4, 9),
    ["In 3 hours", "This evening", "Tomorrow", "Next Monday", "In a week", "In 30 days"],
  ],
  ["a Wednesday evening", local(4, 20), ["In 3 hours", "Tomorrow", "Next Monday", "In a week", "In 30 days"]],
  [
    "a Monday, after which Monday is in a week",
    local(2, 20),
    ["In 3 hours", "Tomorrow", "In a week", "In 30 days"],
  ],
  ["a Sunday, whose next day is Monday", local(1, 20), ["In 3 hours", "Tomorrow", "In a week", "In 30 days"]],
])("on %s the times to snooze until are all ahead, the nearest first", (_, now, expected) => {
  expect(names(now)).toEqual(expected);
  const times = snoozeTimes(now).map(({ at }) => at);
  expect(times).toEqual([...times].sort((one, other) => one - other));
  expect(times[0]).toBe(now + 3 * HOUR);
});

test("Next Monday and Tomorrow begin at eight, whatever the hour", () => {
  const found = Object.fromEntries(snoozeTimes(local(4, 15)).map(({ name, at }) => [name, at]));
  expect([found.Tomorrow, found["Next Monday"]]).toEqual([local(5, 8), local(9, 8)]);
});
