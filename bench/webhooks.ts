/**
 * Measures pushes to one project's endpoint that answers in 100 ms: `bun bench/webhooks.ts [--rounds=3] [--count=1000]`.
 * Next to the rate is that of a bare loop of the same HTTP client, in the same run. Another project's 20 endpoints are pushed
 * to under a steady load, while the first project sends with its endpoint switched off and with it switched on. A round takes half a
 * minute. It ends with 1 if a goal is missed.
 */
import { join } from "node:path";
import { startChild } from "./support/children.ts";
import type { FloorWebhooksOptions, FloorWebhooksResult } from "./support/floor-webhooks.ts";
import { numberOption, rounds } from "./support/options.ts";
import { median } from "./support/table.ts";
import { startGoodEndpoints } from "./prove/support/good-endpoints.ts";
import { openLedger } from "./prove/support/ledger.ts";
import { startLoad } from "./prove/support/load.ts";
import { expectOk, startGround } from "./prove/support/service.ts";
import { atLeast, atMost, conclude, fact, none, quantile } from "./prove/support/table.ts";

const ANSWER_MS = 100;
/** Pushes at a time in the bare loop: as many as the service has by default (`WEBHOOK_CONNECTIONS`). */
const IN_HAND = 60;
const COUNT = numberOption("count", 1000);
/** Posts of the bare loop. */
const BARE = 4000;
const PER_BATCH = 100;
const OTHERS = 20;
const SENDS_PER_SECOND = 10;
const WARM_MS = 3000;
const DRAIN_LIMIT_MS = 60_000;
const POLL_MS = 20;
/** Part of a run at whose beginning and end the rate is not taken: the window grows, then runs out of pushes. */
const EDGE = 0.25;
const GOAL_PER_SECOND = 500;
const GOAL_FACTOR = 1.1;
/** A smaller difference of two p95 says nothing, milliseconds. */
const GRAIN_MS = 3;

/** Tag of the messages whose pushes are counted. */
const TAG = "counted";

/** When each push arrived, milliseconds. */
let arrivals: number[] = [];
/** Messages of whose delivery the endpoint has heard. */
let delivered = 0;
const endpoint = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const now = performance.now();
    const text = await request.text();
    if (text.includes(`"${TAG}"`)) arrivals.push(now);
    if (text.includes(`"${TAG}"`) && text.includes('"type":"delivery"')) delivered++;
    await Bun.sleep(ANSWER_MS);
    return new Response(null, { status: 200 });
  },
});
const url = `http://127.0.0.1:${endpoint.port}/`;
const SERVICE_DOMAIN = "post.test";
const ground = await startGround({ hook: false, env: { DELIVERY: "capture", SERVICE_DOMAIN } });
const accountKey = /account-wide key +(pr_\S+)/.exec(ground.service.said())?.[1] ?? "";
const good = startGoodEndpoints(OTHERS);
for (let nth = 0; nth < OTHERS; nth++)
  await expectOk(ground.service, "POST", "/v1/webhooks", { url: good.url(nth), eventTypes: ["delivery"] });
const { body: other } = await ground.service.call(
  "POST",
  "/v1/senders",
  { name: "Counted", plan: "unlimited", trustTier: "unlimited" },
  { authorization: `Bearer ${accountKey}` },
);
const webhook = await asOther("POST", "/v1/webhooks", { url, eventTypes: ["*"] });
const ledger = await openLedger(join(ground.home, "ledger"));
const load = startLoad(ground.service, { sendsPerSecond: SENDS_PER_SECOND, mailsPerSecond: 0, ledger });

/** Calls the API for the project whose pushes are counted. */
// biome-ignore lint/suspicious/noExplicitAny: a run reads whatever the API shows.
async function asOther(method: string, path: string, body?: unknown): Promise<any> {
  const headers = { authorization: `Bearer ${accountKey}`, "x-service-product": other.id };
  const answer = await ground.service.call(method, path, body, headers);
  if (answer.status < 300) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Sends messages, of which the endpoint hears several events each. */
async function fill(round: number): Promise<void> {
  for (let from = 0; from < COUNT; from += PER_BATCH) {
    const emails = Array.from({ length: PER_BATCH }, (_, at) => ({
      from: { email: `news@onboarding.${SERVICE_DOMAIN}` },
      to: [{ email: `delivered+${round}-${from + at}@simulator.${SERVICE_DOMAIN}` }],
      subject: "counted",
      text: "counted\n",
      tags: [{ name: TAG, value: "yes" }],
    }));
    const { data } = await asOther("POST", "/v1/emails/batch", { emails });
    for (const { id, error } of data) if (id === undefined) throw new Error(JSON.stringify(error));
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const limit = performance.now() + DRAIN_LIMIT_MS;
  while (!condition()) {
    if (performance.now() > limit) throw new Error(`${what} took too long`);
    await Bun.sleep(POLL_MS);
  }
}

/** Pushes a second in the middle of the arrivals. */
function middleRate(): number {
  const [first, last] = [EDGE, 1 - EDGE].map((share) => Math.floor(arrivals.length * share));
  const [begin = 0, end = 0] = [arrivals[first ?? 0], arrivals[last ?? 0]];
  return ((last ?? 0) - (first ?? 0)) / ((end - begin) / 1000);
}

async function floor(round: number): Promise<FloorWebhooksResult> {
  const options: FloorWebhooksOptions = { url, count: BARE, inHand: IN_HAND };
  const program = join(import.meta.dir, "support/floor-webhooks.ts");
  const command = [process.execPath, program, JSON.stringify(options)];
  const child = await startChild(command, { log: join(ground.home, `floor-${round}`) });
  return JSON.parse(await child.finished());
}

const found = { rate: [] as number[], bare: [] as number[], calm: [] as number[], busy: [] as number[] };
let failed = 0;
await Bun.sleep(WARM_MS);
/** Sends the counted messages with the endpoint switched off or on. Returns the p95 of the other endpoints. */
async function slice(round: number, enabled: boolean): Promise<number> {
  await asOther("PATCH", `/v1/webhooks/${webhook.id}`, { enabled });
  arrivals = [];
  delivered = 0;
  good.forget();
  const began = performance.now();
  await fill(round);
  if (enabled) await until(() => delivered >= COUNT, "the pushes");
  else await Bun.sleep(Math.max(0, sliceMs - (performance.now() - began)));
  sliceMs = performance.now() - began;
  return quantile(good.latencies(), 0.95);
}

/** Time of the slice with pushes, which the one without takes as well, milliseconds. */
let sliceMs = 8000;
for (let round = 0; round < rounds(); round++) {
  found.calm.push(await slice(2 * round, false));
  found.busy.push(await slice(2 * round + 1, true));
  found.rate.push(middleRate());
  const bare = await floor(round);
  found.bare.push(bare.perSecond);
  failed += bare.failed;
}
await load.stop(DRAIN_LIMIT_MS);
await ground.stop();
good.stop();
endpoint.stop(true);

const [calm, busy] = [median(found.calm), median(found.busy)];
conclude("webhooks", [
  atLeast(
    `pushes a second to an endpoint that answers in ${ANSWER_MS} ms`,
    median(found.rate),
    GOAL_PER_SECOND,
  ),
  fact(`posts a second of a bare loop, ${IN_HAND} at a time`, median(found.bare)),
  fact("ratio", median(found.rate) / median(found.bare)),
  fact("other endpoints' p95 without, ms", calm),
  atMost("other endpoints' p95 with, ms", busy, Math.max(calm * GOAL_FACTOR, calm + GRAIN_MS)),
  none("posts of the bare loop that failed", failed),
]);
