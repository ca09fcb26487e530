import { describe, expect, test } from "bun:test";
import { MAX_COUNTED_ROLE_MAILBOXES, ROLE_LIMITS, roleVolume } from "../../src/flows/receive/role-volume.ts";
import { manualClock } from "../support/manual-clock.ts";

const HOUR = 3_600_000;
const limits = { mails: 24, octets: 2400 };

describe("a role mailbox", () => {
  test("takes its mails of a day at once, not one more, and one more each hour", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    for (let at = 0; at < 24; at++) expect(volume.take("a@x", 1)).toBe(true);
    expect([volume.hasRoom("a@x"), volume.take("a@x", 1)]).toEqual([false, false]);
    clock.advance(HOUR);
    expect([volume.take("a@x", 1), volume.take("a@x", 1)]).toEqual([true, false]);
  });

  test("takes its octets of a day, the mail that goes over them last", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    expect([volume.take("a@x", 2399), volume.take("a@x", 1000), volume.take("a@x", 1)]).toEqual([
      true,
      true,
      false,
    ]);
    clock.advance(9 * HOUR);
    expect(volume.hasRoom("a@x")).toBe(false);
    clock.advance(HOUR);
    expect(volume.hasRoom("a@x")).toBe(true);
  });

  test("fills no other", () => {
    const volume = roleVolume(manualClock(), limits);
    volume.take("a@x", 5000);
    expect([volume.hasRoom("a@x"), volume.hasRoom("b@x")]).toEqual([false, true]);
  });

  test("gains nothing by a clock put back", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    volume.take("a@x", 5000);
    clock.step(-100 * HOUR);
    expect(volume.hasRoom("a@x")).toBe(false);
  });

  test("has room again within a day though the clock was put back by more", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    volume.take("a@x", 2400);
    clock.step(-100 * HOUR);
    expect(volume.hasRoom("a@x")).toBe(false);
    clock.advance(HOUR);
    expect(volume.hasRoom("a@x")).toBe(true);
  });

  test("is forgotten when too many others have been counted since", () => {
    const volume = roleVolume(manualClock(), limits);
    volume.take("first@x", 5000);
    for (let at = 1; at < MAX_COUNTED_ROLE_MAILBOXES; at++) volume.take(`${at}@x`, 5000);
    expect(volume.hasRoom("first@x")).toBe(false);
    volume.take("last@x", 5000);
    expect([volume.hasRoom("first@x"), volume.hasRoom("1@x")]).toEqual([true, false]);
  });

  test("has limits that hold for a year on an ordinary disk", () => {
    expect((365 * ROLE_LIMITS.octets) / 1024 ** 3).toBeLessThan(50);
  });
});
