import { describe, expect, test } from "bun:test";
import { parseDay, parseTime } from "../../../../src/core/time/date-times.ts";

describe("an RFC 3339 date-time", () => {
  test.each([
    ["in the last minute of a day", "2026-11-22T23:59:59Z", "2026-11-22T23:59:59.000Z"],
    ["that RFC 3339 can name first", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"],
    ["that RFC 3339 can name last", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["in a leap second", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"],
    ["in a leap second of long ago", "1912-06-30T23:59:60Z", "1912-07-01T00:00:00.000Z"],
    ["within a leap second", "1990-12-31T23:59:60.25Z", "1991-01-01T00:00:00.250Z"],
    ["in a leap second of another zone", "1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00.000Z"],
    [
      "in a leap second that falls in another month locally",
      "2017-01-01T05:29:60+05:30",
      "2017-01-01T00:00:00.000Z",
    ],
  ])("%s is a time", (_, text, at) => {
    expect(parseTime(text)).toBe(Date.parse(at));
  });

  test.each([
    ["of hour 24", "2026-11-22T24:00:00Z"],
    ["of hour 24 without seconds", "2026-11-22T24:00Z"],
    ["of minute 60", "2026-11-22T23:60:00Z"],
    ["of second 60 within a day", "2016-12-31T12:00:60Z"],
    ["of second 60 within a month", "2016-12-30T23:59:60Z"],
    ["of second 60 before midnight there and not in UTC", "2016-12-31T23:59:60+01:00"],
    ["of second 61", "2016-12-31T23:59:61Z"],
    ["of second 60 on a day without a leap second", "2016-12-32T23:59:60Z"],
    ["of second 60 in hour 24", "2016-12-31T24:59:60Z"],
    ["of a leap second after the last one known", "9999-12-31T23:59:60Z"],
    ["before the first year in UTC", "0000-01-01T00:59:59+01:00"],
    ["after the last year in UTC", "9999-12-31T23:00:00-01:00"],
    ["of a day that the month does not have", "2026-02-29T10:00:00Z"],
    ["with ten digits of a second", "2026-11-22T10:00:00.1234567890Z"],
    ["in a zone of 24 hours", "2026-11-22T10:00:00+24:00"],
  ])("%s is not a time", (_, text) => {
    expect(parseTime(text)).toBeNull();
  });
});

describe("a day", () => {
  test("a day is its midnight in UTC", () => {
    expect(parseDay("2024-02-29")).toBe(Date.parse("2024-02-29T00:00:00Z"));
  });

  test.each(["", "2026", "2026-11", "2026-02-29", "2026-11-31", "2026-13-01", "2026-11-22Z"])(
    "%j is not a day",
    (text) => {
      expect(parseDay(text)).toBeNull();
    },
  );
});
