import { expect, test } from "bun:test";
import {
  createFailedLogins,
  FAILURE_WINDOW_MS,
  MAX_FAILED_LOGINS,
} from "../../../../src/smtp/listener/failed-logins.ts";
import { manualClock } from "../../../support/manual-clock.ts";

function failing(ip: string, times: number) {
  const clock = manualClock();
  const failures = createFailedLogins(clock);
  for (let time = 0; time < times; time++) failures.count(ip);
  return { clock, failures };
}

test("an address is turned away after twenty failures in a minute, loopback too", () => {
  for (const ip of ["192.0.2.1", "127.0.0.1"]) {
    expect(failing(ip, MAX_FAILED_LOGINS - 1).failures.blocks(ip)).toBe(false);
    expect(failing(ip, MAX_FAILED_LOGINS).failures.blocks(ip)).toBe(true);
    expect(failing(ip, MAX_FAILED_LOGINS).failures.blocks("192.0.2.2")).toBe(false);
  }
});

test("the addresses of one IPv6 /64 count together", () => {
  const { failures } = failing("2001:db8::1", MAX_FAILED_LOGINS);
  expect(failures.blocks("2001:db8::2")).toBe(true);
  expect(failures.blocks("2001:db8:0:1::1")).toBe(false);
});

test("a failure counts for a minute", () => {
  const { clock, failures } = failing("192.0.2.1", MAX_FAILED_LOGINS);
  clock.advance(FAILURE_WINDOW_MS - 1);
  expect(failures.blocks("192.0.2.1")).toBe(true);
  clock.advance(1);
  expect(failures.blocks("192.0.2.1")).toBe(false);
});
