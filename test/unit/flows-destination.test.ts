import { describe, expect, test } from "bun:test";
import { judge, newDestination } from "../../src/flows/dispatch/destination.ts";
import { OneHandover } from "../../src/flows/dispatch/handover.ts";
import { Room } from "../../src/flows/dispatch/room.ts";
import { noFacts, type DeliveryReport, type Passage } from "../../src/flows/send/outcome.ts";
import { manualClock } from "../support/manual-clock.ts";

const REST_MS = 30_000;
const lost: DeliveryReport = { ...noFacts(0), kind: "trouble", stage: "connect", reason: "ECONNREFUSED" };
const taken: DeliveryReport = {
  ...noFacts(0),
  kind: "accepted",
  reply: { stage: "final", code: 250, enhanced: null, text: "ok" },
};

describe("a destination that could not be reached", () => {
  test.each([
    ["rests", 0, true],
    ["does not where another mail got through meanwhile", 1_500, false],
    ["rests though an answer lies ahead, of before the clock was put back", 9_000, true],
  ])("%s", (_, answeredAt, rests) => {
    const destination = newDestination("d", "hosts");
    judge(destination, taken, { startedAt: answeredAt, now: answeredAt }, REST_MS);
    expect(judge(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS)).toBe(rests);
  });

  test("is not tried by mail that was begun to be put off, though the rest ends before it is", async () => {
    const clock = manualClock();
    const destination = newDestination("d", "hosts");
    judge(destination, lost, { startedAt: clock.now(), now: clock.now() }, REST_MS);
    let sent = 0;
    const passage: Passage = {
      ...{ kind: "hosts", destination: "d", foregone: null },
      async deliver() {
        sent++;
        return lost;
      },
    };
    const room = new Room({ desk: 1, underWay: 1, bytes: 1 });
    const handover = new OneHandover({ clock, room, restMs: REST_MS }, passage, destination, () => undefined);
    clock.advance(REST_MS);
    const shipment = { mailFrom: "", rcptTo: "a@d", domain: "d", raw: Buffer.alloc(1), smtpUtf8: false };
    expect(await handover.deliver(shipment)).toMatchObject({ kind: "trouble", stage: "connect" });
    expect(sent).toBe(0);
  });
});
