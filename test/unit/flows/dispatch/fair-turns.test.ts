import { expect, test } from "bun:test";
import { Dispatch } from "../../../../src/flows/dispatch/dispatch.ts";
import { ROUND_LENGTH } from "../../../../src/flows/dispatch/two-priority-queue.ts";
import type { DeliveryRoute } from "../../../../src/flows/deliver/outcome.ts";
import { noFacts } from "../../../../src/flows/deliver/outcome.ts";
import { transmitJob } from "../../../../src/queue/hint.ts";
import { chanceOf } from "../../../support/chance.ts";
import { testLane } from "../../../support/lanes.ts";
import { manualClock } from "../../../support/manual-clock.ts";

interface Mail {
  senderId: string;
  domain: string;
  bulk: boolean;
  retry: boolean;
  nth: number;
}

const lowOf = ({ bulk, retry }: Mail) => bulk || retry;
const LIMITS = {
  perConnection: 1,
  own: 1,
  trials: 1,
  deferrals: 1,
  preparing: 1,
  delivering: 1,
  octets: 1e9,
};
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Gives mail of one provider to a dispatch that sends one message at a time. Returns it in the order of leaving. */
async function orderOf(mails: readonly Mail[]): Promise<Mail[]> {
  const clock = manualClock();
  const lane = testLane(clock, "one", { connections: 1 });
  const left: Mail[] = [];
  const byKey = new Map(mails.map((mail, at) => [transmitJob(`m${at}`, 0, mail).key, mail]));
  // Nothing leaves before all of it waits.
  const route = Promise.withResolvers<DeliveryRoute>();
  const dispatch = new Dispatch(
    {
      clock,
      pace: null,
      restMs: 0,
      findDeliveryRoute: () => route.promise,
      async transmit({ key }, handover) {
        const mail = byKey.get(key);
        if (mail !== undefined) left.push(mail);
        const { domain = "" } = mail ?? {};
        await handover.deliver({ mailFrom: "", rcptTo: "", domain, raw: Buffer.alloc(1), smtpUtf8: false });
        return null;
      },
    },
    { ...LIMITS, waiting: 1_000_000 },
  );
  for (const [at, mail] of mails.entries()) dispatch.offer(transmitJob(`m${at}`, 0, mail), mail.retry);
  const reply = { stage: "final", code: 250, enhanced: null, text: "ok" };
  route.resolve({
    kind: "hosts",
    destination: "mx:one",
    lane,
    knownOutcome: null,
    deliver: async () => ({ ...noFacts(0), kind: "accepted", reply }),
  });
  while (left.length < mails.length) await tick();
  return left;
}

function many(count: number, given: Partial<Mail> = {}): Mail[] {
  const mail = { senderId: "A", domain: "a.test", bulk: false, retry: false };
  return Array.from({ length: count }, (_, nth) => ({ ...mail, ...given, nth }));
}

test("one message of a project leaves within three turns although another has thousands in the lane", async () => {
  const order = await orderOf([...many(3000), ...many(1, { senderId: "B" })]);
  expect(order.findIndex(({ senderId }) => senderId === "B")).toBeLessThan(3);
});

test("a message that somebody waits for leaves before the campaign of its own project", async () => {
  const order = await orderOf([...many(3000, { bulk: true }), ...many(1, { nth: -1 })]);
  expect(order.findIndex(({ nth }) => nth === -1)).toBeLessThan(ROUND_LENGTH);
});

test("projects take turns, then the domains of each, and a message to a second domain does not wait for the first", async () => {
  const order = await orderOf([
    ...many(100),
    ...many(1, { domain: "b.test" }),
    ...many(100, { senderId: "B" }),
  ]);
  expect(order.findIndex(({ domain }) => domain === "b.test")).toBeLessThan(4);
});

/** Turns that one project may be ahead of another: one, and one that began before the route of the other was known. */
const MAX_SPREAD = 2;

/** Returns the faults in the order of random mail that all waited at the beginning. */
async function faultsOf(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const mails = Array.from({ length: 1 + chance.below(6) }, (_, project) =>
    Array.from({ length: 1 + chance.below(3) }, (_, domain) =>
      many(chance.below(chance.pick([2, 10, 60])), {
        senderId: `P${project}`,
        domain: `d${domain}.test`,
        bulk: chance.happens(0.4),
        retry: chance.happens(0.2),
      }),
    ),
  ).flat(2);
  const order = await orderOf(mails);
  const faults: string[] = [];
  for (const low of [false, true]) {
    const left = new Map<string, number>();
    for (const mail of mails)
      if (lowOf(mail) === low) left.set(mail.senderId, (left.get(mail.senderId) ?? 0) + 1);
    const served = new Map<string, number>();
    for (const mail of order) {
      if (lowOf(mail) !== low) continue;
      served.set(mail.senderId, (served.get(mail.senderId) ?? 0) + 1);
      left.set(mail.senderId, (left.get(mail.senderId) ?? 0) - 1);
      const waiting = [...left].filter(([, count]) => count > 0).map(([id]) => served.get(id) ?? 0);
      const spread = Math.max(...waiting, 0) - Math.min(...waiting, Infinity);
      if (waiting.length > 1 && spread > MAX_SPREAD) faults.push(`seed ${seed}: turns differ by ${spread}`);
    }
  }
  let [high, low] = [mails.filter((mail) => !lowOf(mail)).length, mails.filter(lowOf).length];
  let sinceLow = 0;
  for (const mail of order) {
    sinceLow = lowOf(mail) || low === 0 ? 0 : sinceLow + 1;
    if (sinceLow > ROUND_LENGTH) faults.push(`seed ${seed}: ${sinceLow} turns without bulk mail`);
    if (lowOf(mail)) low--;
    else high--;
  }
  if (high !== 0 || low !== 0) faults.push(`seed ${seed}: ${high + low} messages are left`);
  return faults;
}

test("in random mixes of mail no project and no priority waits longer than its turn", async () => {
  const faults: string[] = [];
  for (let seed = 1; seed <= 60; seed++) faults.push(...(await faultsOf(seed)));
  expect(faults.slice(0, 5)).toEqual([]);
});
