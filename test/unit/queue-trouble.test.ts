import { expect, test } from "bun:test";
import { TROUBLE_LINES, TROUBLE_WINDOW_MS, troubleLog } from "../../src/queue/trouble.ts";

test("each kind of trouble is logged up to its limit a window, and the next window tells what was left out", () => {
  let now = 0;
  const lines: { message: string; properties: Record<string, unknown> }[] = [];
  const trouble = troubleLog({
    clock: { now: () => now, after: () => () => {} },
    log: { info: () => undefined, warn: (message, properties) => void lines.push({ message, properties }) },
  });
  for (let count = 0; count < TROUBLE_LINES + 3; count++) trouble("one", { count });
  trouble("other", {});
  expect(lines.map(({ message }) => message)).toEqual([...Array(TROUBLE_LINES).fill("one"), "other"]);

  now = TROUBLE_WINDOW_MS - 1;
  trouble("one", {});
  expect(lines.length).toBe(TROUBLE_LINES + 1);

  now = TROUBLE_WINDOW_MS;
  trouble("one", { count: 9 });
  trouble("one", { count: 10 });
  expect(lines.slice(-2)).toEqual([
    { message: "one", properties: { count: 9, suppressed: 4 } },
    { message: "one", properties: { count: 10 } },
  ]);

  for (let count = 0; count < TROUBLE_LINES; count++) trouble("one", {});
  now = 0;
  trouble("one", { count: 11 });
  // The clock was put back by a whole window: a new one begins.
  expect(lines.at(-1)).toEqual({ message: "one", properties: { count: 11, suppressed: 2 } });
});
