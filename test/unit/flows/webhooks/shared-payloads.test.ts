import { describe, expect, test } from "bun:test";
import { SharedPayloads } from "../../../../src/flows/webhooks/shared-payloads.ts";
import { reason } from "../../../support/reason.ts";

/** Bytes that one payload takes while it is made, and when it is made. */
const [MOST, MADE] = [40, 30];

function payload() {
  const bytes = new Uint8Array(MADE);
  return { octets: () => bytes, size: MADE };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Payloads of `MADE` bytes, with a count of how often each event's was made. */
function counted() {
  const payloads = new SharedPayloads({ total: 90, perOwner: 60, maxWaiting: 10 });
  const made: string[] = [];
  const take = (eventId: string, senderId = "a") =>
    payloads.take({
      eventId,
      senderId,
      most: MOST,
      async make() {
        made.push(eventId);
        return payload();
      },
    });
  return { payloads, made, take };
}

describe("a payload", () => {
  test("a payload is made once for all pushes of its event, which share its memory", async () => {
    const { payloads, made, take } = counted();
    const [one, other] = await Promise.all([take("evt_1"), take("evt_1")]);
    expect(one?.octets(true)).toBe(other?.octets(true) as Uint8Array);
    expect([made, payloads.held]).toEqual([["evt_1"], MADE]);
  });

  test("a payload is made while at most one of another project is, and other work gets a turn in between", async () => {
    const payloads = new SharedPayloads();
    const steps: string[] = [];
    const finish = new Map<string, () => void>();
    const take = (name: string) =>
      payloads.take({
        eventId: `evt_${name}`,
        senderId: name,
        most: MOST,
        async make() {
          steps.push(name);
          await new Promise<void>((resolve) => finish.set(name, resolve));
          return payload();
        },
      });
    const all = ["a", "b", "c"].map(take);
    await turn();
    expect(steps).toEqual(["a", "b"]);
    setImmediate(() => steps.push("other work"));
    finish.get("a")?.();
    await all[0];
    await turn();
    await turn();
    expect(steps).toEqual(["a", "b", "other work", "c"]);
    for (const name of ["b", "c"]) finish.get(name)?.();
    await Promise.all(all);
  });

  test("a payload is dropped with the last push that uses it", async () => {
    const { payloads, made, take } = counted();
    const pushes = [await take("evt_1"), await take("evt_1")];
    pushes[0]?.release();
    expect([made, payloads.held]).toEqual([["evt_1"], MADE]);
    pushes[1]?.release();
    expect(payloads.held).toBe(0);
    (await take("evt_1"))?.release();
    expect(made).toEqual(["evt_1", "evt_1"]);
  });

  test("a payload waits if its project holds too much, and leaves other projects their room", async () => {
    const { payloads, made, take } = counted();
    const first = await take("evt_1");
    const second = take("evt_2");
    await take("evt_3", "b");
    expect([made, payloads.held]).toEqual([["evt_1", "evt_3"], 2 * MADE]);
    first?.release();
    expect((await second)?.octets(true).length).toBe(MADE);
    expect(made).toEqual(["evt_1", "evt_3", "evt_2"]);
  });

  test("a payload waits if all projects together hold too much", async () => {
    const { made, take } = counted();
    const held = [await take("evt_1", "a"), await take("evt_2", "b")];
    const third = take("evt_3", "c");
    await turn();
    expect(made).toEqual(["evt_1", "evt_2"]);
    held[0]?.release();
    expect((await third)?.octets(true).length).toBe(MADE);
  });

  test("at most one large payload is handed out per tick of the event loop, and projects take turns", async () => {
    const payloads = new SharedPayloads();
    const order: string[] = [];
    const take = (senderId: string) =>
      payloads
        .take({
          eventId: senderId,
          senderId,
          most: 100_000,
          make: async () => ({ octets: () => new Uint8Array(1), size: 100_000 }),
        })
        // The pushes wait for a commit together.
        .then((made) => turn().then(() => made?.turn?.()))
        .then(() => order.push(senderId));
    const taken = ["a", "a", "a", "b"].map(take);
    while (order.length === 0) await turn();
    expect(order.length).toBe(1);
    await Promise.all(taken);
    expect(order.indexOf("b")).toBeLessThan(3);
  });

  test("a payload that cannot be made fails all pushes that wait for it, and is made again for the next", async () => {
    const payloads = new SharedPayloads();
    const outcomes = [() => Promise.reject(new Error("no object store")), async () => payload()];
    let at = 0;
    const take = () => {
      const make = () => outcomes[at++]?.() ?? Promise.resolve(null);
      return payloads.take({ eventId: "evt_1", senderId: "a", most: MOST, make });
    };
    const failed = await Promise.all([reason(take()), reason(take())]);
    expect(failed.map(String)).toEqual(["Error: no object store", "Error: no object store"]);
    expect(payloads.held).toBe(0);
    expect((await take())?.octets(true).length).toBe(MADE);
  });

  test("a message that is gone has no payload and holds no memory", async () => {
    const payloads = new SharedPayloads();
    const gone = { eventId: "evt_1", senderId: "a", most: MOST, make: async () => null };
    expect(await Promise.all([payloads.take(gone), payloads.take(gone)])).toEqual([null, null]);
    expect(payloads.held).toBe(0);
  });
});
