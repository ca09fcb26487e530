import { describe, expect, test } from "bun:test";
import {
  MAX_COUNTED_ROLE_MAILBOXES,
  ROLE_LIMITS,
  roleVolume,
} from "../../../../src/flows/receive/role-volume.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const HOUR = 3_600_000;
const limits = { mails: 24, octets: 2400 };

describe("a role mailbox", () => {
  test("a role mailbox accepts its daily number at once, not one more, and one more each hour", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    for (let at = 0; at < 24; at++) expect(volume.add("a@x", 1)).toBe(true);
    expect([volume.hasRoom("a@x"), volume.add("a@x", 1)]).toEqual([false, false]);
    clock.advance(HOUR);
    expect([volume.add("a@x", 1), volume.add("a@x", 1)]).toEqual([true, false]);
  });

  test("a role mailbox accepts its daily octets, including the message that exceeds them", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    expect([volume.add("a@x", 2399), volume.add("a@x", 1000), volume.add("a@x", 1)]).toEqual([
      true,
      true,
      false,
    ]);
    clock.advance(9 * HOUR);
    expect(volume.hasRoom("a@x")).toBe(false);
    clock.advance(HOUR);
    expect(volume.hasRoom("a@x")).toBe(true);
  });

  test("a role mailbox does not use the limit of another", () => {
    const volume = roleVolume(manualClock(), limits);
    volume.add("a@x", 5000);
    expect([volume.hasRoom("a@x"), volume.hasRoom("b@x")]).toEqual([false, true]);
  });

  test("gains nothing if the clock is set forward", () => {
    const clock = manualClock();
    const volume = roleVolume(clock, limits);
    volume.add("a@x", 5000);
    clock.step(100 * HOUR);
    expect(volume.hasRoom("a@x")).toBe(false);
  });

  test("a role mailbox is forgotten if too many others were counted since", () => {
    const volume = roleVolume(manualClock(), limits);
    volume.add("first@x", 5000);
    for (let at = 1; at < MAX_COUNTED_ROLE_MAILBOXES; at++) volume.add(`${at}@x`, 5000);
    expect(volume.hasRoom("first@x")).toBe(false);
    volume.add("last@x", 5000);
    expect([volume.hasRoom("first@x"), volume.hasRoom("1@x")]).toEqual([true, false]);
  });

  test("a role mailbox has limits that an ordinary disk can hold for a year", () => {
    expect((365 * ROLE_LIMITS.octets) / 1024 ** 3).toBeLessThan(50);
  });
});
