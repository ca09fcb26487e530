import { describe, expect, test } from "bun:test";
import type { AnswerKind } from "../../../../src/net/zone/answer.ts";
import {
  ANSWERS_PER_SECOND,
  clientNetwork,
  createResponseLimiter,
  type ResponseLimiter,
} from "../../../../src/net/zone/response-limiter.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const NETWORK = "192.0.2";

function passages(limiter: ResponseLimiter, count: number, kind: AnswerKind, question = "16 a.mail.test") {
  const said = { send: 0, slip: 0, drop: 0 };
  for (let left = count; left > 0; left--) said[limiter.take(NETWORK, kind, question)]++;
  return said;
}

describe("answers of one kind to one network", () => {
  const rows: [AnswerKind, number, number][] = [
    ["records", 2 * ANSWERS_PER_SECOND.records, 5],
    ["none", 2 * ANSWERS_PER_SECOND.none, 5],
    // An error never becomes a TC answer, because TCP would give nothing more.
    ["error", 2 * ANSWERS_PER_SECOND.error, 0],
  ];
  test.each(rows)(
    "%s: a burst is answered, and of the rest every second one gets TC",
    (kind, burst, slips) => {
      const limiter = createResponseLimiter(manualClock());
      expect(passages(limiter, burst + 10, kind)).toEqual({ send: burst, slip: slips, drop: 10 - slips });
    },
  );

  test("answers of one kind to one network come back at their rate, and no more of them than a burst", () => {
    const clock = manualClock();
    const limiter = createResponseLimiter(clock);
    passages(limiter, 100, "records");
    clock.advance(1000);
    expect(passages(limiter, 100, "records").send).toBe(ANSWERS_PER_SECOND.records);
    clock.advance(3_600_000);
    expect(passages(limiter, 100, "records").send).toBe(2 * ANSWERS_PER_SECOND.records);
  });

  test("answers of one kind to one network do not count for another question, kind or network", () => {
    const limiter = createResponseLimiter(manualClock());
    passages(limiter, 100, "records");
    expect(limiter.take(NETWORK, "records", "16 b.mail.test")).toBe("send");
    expect(limiter.take(NETWORK, "none", "16 a.mail.test")).toBe("send");
    expect(limiter.take("198.51.100", "records", "16 a.mail.test")).toBe("send");
  });

  test("answers of one kind to one network count together if names do not exist, because clients can invent names", () => {
    const limiter = createResponseLimiter(manualClock());
    const said = Array.from({ length: 50 }, (_, at) => limiter.take(NETWORK, "none", `1 ${at}.mail.test`));
    expect(said.filter((passage) => passage === "send")).toHaveLength(2 * ANSWERS_PER_SECOND.none);
  });

  test("answers of one kind to one network have a limit in total, however many questions they are spread over", () => {
    const limiter = createResponseLimiter(manualClock());
    const asked = 2 * ANSWERS_PER_SECOND.all + 100;
    const said = Array.from({ length: asked }, (_, at) => limiter.take(NETWORK, "records", `16 k${at}`));
    expect(said.filter((passage) => passage === "send")).toHaveLength(2 * ANSWERS_PER_SECOND.all);
  });
});

describe("the limiter's table", () => {
  test("the limiter's table is bounded, and keeps entries in use", () => {
    const limiter = createResponseLimiter(manualClock(), 100);
    passages(limiter, 100, "records");
    for (let at = 0; at < 1000; at++) {
      limiter.take(`10.0.${at}`, "records", "16 a");
      expect(limiter.size()).toBeLessThanOrEqual(100);
      expect(limiter.take(NETWORK, "records", "16 a.mail.test")).not.toBe("send");
    }
  });

  test("forgets unused entries: if a client forges that many addresses, it gains one burst", () => {
    const limiter = createResponseLimiter(manualClock(), 100);
    passages(limiter, 100, "records");
    for (let at = 0; at < 100; at++) limiter.take(`10.0.${at}`, "records", "16 a");
    expect(passages(limiter, 100, "records").send).toBe(2 * ANSWERS_PER_SECOND.records);
  });
});

test.each([
  ["192.0.2.1", "192.0.2.254", true],
  ["192.0.2.1", "192.0.3.1", false],
  ["::ffff:192.0.2.1", "192.0.2.9", true],
  ["2001:db8:1:200::1", "2001:db8:1:2ff:ffff::1", true],
  ["2001:db8:1:200::1", "2001:db8:1:300::1", false],
  ["fe80::1%eth0", "fe80::2", true],
  ["192.0.2.1", "2001:db8::1", false],
])("%s and %s are one network: %p", (a, b, same) => {
  expect(clientNetwork(a) === clientNetwork(b)).toBe(same);
});
