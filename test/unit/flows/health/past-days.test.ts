import { expect, test } from "bun:test";
import { lastDays } from "../../../../src/flows/health/traffic/past-days.ts";

test("figures of finished days are read once, and those of today each time", async () => {
  const reads: number[] = [];
  const read = lastDays(30, async (day) => {
    reads.push(day);
    return day;
  });
  const all = (today: number) => Array.from({ length: 30 }, (_, at) => today - 29 + at);
  expect(await read(100)).toEqual(all(100));
  expect(reads.splice(0)).toEqual(all(100));
  expect(await read(100)).toEqual(all(100));
  expect(await read(101)).toEqual(all(101));
  expect(reads.splice(0)).toEqual([100, 100, 101]);
});

test("a day that cannot be read is read again", async () => {
  let fails = true;
  const read = lastDays(2, async (day) => {
    if (fails) throw new Error("the database does not answer");
    return day;
  });
  await expect(read(100)).rejects.toThrow("does not answer");
  fails = false;
  expect(await read(100)).toEqual([99, 100]);
});
