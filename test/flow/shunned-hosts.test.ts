import { expect, test } from "bun:test";
import type { ConnectResult } from "../../src/smtp/client/connection.ts";
import type { Destination } from "../../src/smtp/client/delivery.ts";
import { candidates, connectInOrder } from "../../src/smtp/client/host-order.ts";
import { manualClock } from "../support/manual-clock.ts";

const common = { port: 25, tls: "opportunistic", ehloName: "us.test" } as const;
/** A domain with a first host and a backup. */
const theirs: Destination = {
  ...common,
  key: "mx:mx1.big.test,mx2.big.test:25",
  hosts: [
    { name: "mx1.big.test", addresses: ["192.0.2.1"] },
    { name: "mx2.big.test", addresses: ["198.51.100.1"] },
  ],
};
/** Another domain whose host name points to the first one's address, with a policy that its certificate fails. */
const strangers: Destination = {
  ...common,
  key: "mx:mx.evil.test=policy:25",
  hosts: [
    {
      name: "mx.evil.test",
      addresses: ["192.0.2.1"],
      security: { tls: "verified", policy: "MTA-STS, enforced" },
    },
  ],
};

test("a failing policy of one domain does not change the order of another domain's hosts", async () => {
  const clock = manualClock();
  const shunned = new Map<string, number>();
  const mismatch = async (host: string): Promise<ConnectResult> => ({
    kind: "failed",
    result: { kind: "trouble", stage: "starttls", reason: `certificate of ${host}: another name` },
  });
  await connectInOrder(clock, shunned, strangers, clock.now() + 1000, mismatch);
  expect(candidates(theirs, shunned, clock.now()).map(({ host }) => host)).toEqual([
    "mx1.big.test",
    "mx2.big.test",
  ]);
});
