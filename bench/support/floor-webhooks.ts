/** The service's own HTTP client in a bare loop: so many posts at a time to one URL, nothing stored. Prints one JSON line. */
import { systemClock } from "../../src/clock.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { post } from "../../src/net/post.ts";

export interface FloorWebhooksOptions {
  url: string;
  count: number;
  inHand: number;
}

export interface FloorWebhooksResult {
  perSecond: number;
  /** Posts that were not answered with 2xx. */
  failed: number;
}

const BODY_OCTETS = 400;
const TIMEOUT_MS = 15_000;

const { url, count, inHand }: FloorWebhooksOptions = JSON.parse(process.argv[2] ?? "{}");
const deps = {
  clock: systemClock,
  mayReach: () => true,
  resolver: createResolver({ clock: systemClock }, { servers: [] }),
};
const headers = { "Content-Type": "application/json" };
const body = [Buffer.from(JSON.stringify({ data: "x".repeat(BODY_OCTETS) }))];
let [begun, failed] = [0, 0];

async function worker(): Promise<void> {
  while (begun++ < count) {
    const outcome = await post(deps, { url, headers, body, timeoutMs: TIMEOUT_MS, allowPrivate: true });
    if (outcome.kind !== "answered" || outcome.status >= 300) failed++;
  }
}

const began = performance.now();
await Promise.all(Array.from({ length: inHand }, worker));
const result: FloorWebhooksResult = { perSecond: count / ((performance.now() - began) / 1000), failed };
console.log(JSON.stringify(result));
