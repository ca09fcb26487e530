import { expect, test } from "bun:test";
import {
  MAX_LINES_PER_WINDOW,
  LOG_WINDOW_MS,
  createLimitedLog,
  reason,
} from "../../../src/queue/limited-log.ts";

test("each kind of trouble is logged up to its limit in a window, and the next window reports the number left out", () => {
  let now = 0;
  const lines: { message: string; properties: Record<string, unknown> }[] = [];
  const trouble = createLimitedLog({
    clock: { now: () => 0, elapsed: () => now, after: () => () => {} },
    log: { info: () => undefined, warn: (message, properties) => void lines.push({ message, properties }) },
  });
  for (let count = 0; count < MAX_LINES_PER_WINDOW + 3; count++) trouble("one", { count });
  trouble("other", {});
  expect(lines.map(({ message }) => message)).toEqual([...Array(MAX_LINES_PER_WINDOW).fill("one"), "other"]);

  now = LOG_WINDOW_MS - 1;
  trouble("one", {});
  expect(lines.length).toBe(MAX_LINES_PER_WINDOW + 1);

  now = LOG_WINDOW_MS;
  trouble("one", { count: 9 });
  trouble("one", { count: 10 });
  expect(lines.slice(-2)).toEqual([
    { message: "one", properties: { count: 9, suppressed: 4 } },
    { message: "one", properties: { count: 10 } },
  ]);
});

test.each([
  [
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
    "Redis cannot be reached",
  ],
  ['Unknown RESP type 72 "H"', "what answers at REDIS_URL is not Redis: check its host, port and scheme"],
  ["WRONGPASS invalid username-password pair", "WRONGPASS invalid username-password pair"],
])("the library's error %j is told as %j", (message, told) => {
  expect(reason(new Error(message))).toBe(told);
});
