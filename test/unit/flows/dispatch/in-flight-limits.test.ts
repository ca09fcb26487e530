import { expect, test } from "bun:test";
import {
  type Delivery,
  InFlight,
  type InFlightLimits,
} from "../../../../src/flows/dispatch/in-flight-limits.ts";
import { HANG_MS } from "../../../../src/flows/deliver/outcome.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A limit of two messages in flight, both in use, with a list of those that were aborted. */
function fullInFlight(sizes: readonly [number, number], limits: Partial<InFlightLimits> = {}) {
  const inFlight = new InFlight({ preparing: 10, delivering: 2, octets: 1000 * MIB, ...limits });
  const aborted: number[] = [];
  for (const [at, octets] of sizes.entries()) {
    const delivery: Delivery = { octets, since: 0, abort: () => aborted.push(at) };
    inFlight.startDelivery(delivery);
  }
  return { inFlight, aborted };
}

test("a hanging message is aborted when all places are in use, at its time and not before", () => {
  const { inFlight, aborted } = fullInFlight([1, 1]);
  inFlight.abortStalled(HANG_MS - 1);
  expect(aborted).toEqual([]);
  inFlight.abortStalled(HANG_MS + 1);
  expect(aborted).toEqual([0]);
});

test("a large message has the time that its octets take at 256 KiB a second", () => {
  const { inFlight, aborted } = fullInFlight([26 * MIB, 25 * MIB]);
  inFlight.abortStalled(HANG_MS + 95_000);
  expect(aborted).toEqual([]);
  // 26 MiB take 104 s and 25 MiB 100 s, so the later one passes its time first.
  inFlight.abortStalled(HANG_MS + 101_000);
  expect(aborted).toEqual([1]);
});

test("a message that is being aborted is not aborted again, and its place counts until it is free", () => {
  const { inFlight, aborted } = fullInFlight([1, 1]);
  inFlight.abortStalled(HANG_MS + 1);
  inFlight.abortStalled(HANG_MS + 2);
  inFlight.abortStalled(HANG_MS + 3);
  expect(aborted).toEqual([0, 1]);
  expect(inFlight.hasRoom()).toBe(false);
});

test("no more messages are aborted than the octets of the next one need", () => {
  const { inFlight, aborted } = fullInFlight([200 * KIB, 200 * KIB], { delivering: 10, octets: 500 * KIB });
  inFlight.abortStalled(HANG_MS + 1_000);
  expect(aborted).toEqual([0]);
});

test("after a message larger than the whole limit the next one may still start, alone", () => {
  const inFlight = new InFlight({ preparing: 10, delivering: 10, octets: 25 * MIB });
  const delivery: Delivery = { octets: 30 * MIB, since: 0, abort: () => undefined };
  inFlight.startDelivery(delivery);
  expect(inFlight.hasRoom()).toBe(false);
  inFlight.endDelivery(delivery);
  expect(inFlight.hasRoom()).toBe(true);
});

test("a message that is reported twice as done gives its octets back once", () => {
  const inFlight = new InFlight({ preparing: 10, delivering: 10, octets: 500 * KIB });
  const deliveries = [0, 1, 2].map((): Delivery => ({ octets: 200 * KIB, since: 0, abort: () => undefined }));
  const [first] = deliveries;
  for (const delivery of deliveries) inFlight.startDelivery(delivery);
  if (first !== undefined) for (let times = 0; times < 2; times++) inFlight.endDelivery(first);
  expect(inFlight.hasRoom()).toBe(false);
});

test("missing octets are taken back from large messages that hang, no more than needed, and never from a small one", () => {
  const inFlight = new InFlight({ preparing: 10, delivering: 10, octets: 1000 * MIB });
  const aborted: number[] = [];
  for (const [at, octets] of [KIB, 10 * MIB, 10 * MIB, 10 * MIB].entries())
    inFlight.startDelivery({ octets, since: 0, abort: () => aborted.push(at) });
  inFlight.abortStalled(HANG_MS + 60_000);
  inFlight.abortStalled(HANG_MS, 11 * MIB);
  expect(aborted).toEqual([]);
  inFlight.abortStalled(HANG_MS + 60_000, 11 * MIB);
  expect(aborted).toEqual([1, 2]);
});

test("octets are also taken back if all lookup places are in use", () => {
  const inFlight = new InFlight({ preparing: 1, delivering: 10, octets: 1000 * MIB });
  const aborted: number[] = [];
  inFlight.startPreparing();
  inFlight.startDelivery({ octets: MIB, since: 0, abort: () => aborted.push(0) });
  inFlight.abortStalled(HANG_MS + 60_000);
  expect(aborted).toEqual([]);
  inFlight.abortStalled(HANG_MS + 60_000, 1);
  expect(aborted).toEqual([0]);
});

test("the share of large messages is not taken from small ones", () => {
  const inFlight = new InFlight({ preparing: 10, delivering: 10, octets: 10 * MIB });
  inFlight.startDelivery({ octets: 9 * MIB, since: 0, abort: () => undefined });
  expect(inFlight.hasRoom()).toBe(true);
  for (let delivery = 0; delivery < 3; delivery++)
    inFlight.startDelivery({ octets: 200 * KIB, since: 0, abort: () => undefined });
  inFlight.startPreparing();
  expect(inFlight.hasRoom()).toBe(false);
});
