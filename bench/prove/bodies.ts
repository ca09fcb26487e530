/**
 * Proves that no JSON body freezes the process: `bun bench/prove/bodies.ts [--mebibytes=39] [--rounds=2] [--only=NAME]`.
 * Bodies of the worst shapes are sent one by one while another process asks `/livez`. An idle row shows what this machine
 * makes `/livez` wait by itself.
 */
import { join } from "node:path";
import { forgetPeak, peakMemory, residentMemory } from "../support/peak-memory.ts";
import { chosen } from "../support/options.ts";
import { printMarkdown } from "../support/inbound-table.ts";
import { endWithin } from "./support/limit.ts";
import { startProbe } from "./support/livez-probe.ts";
import { FROM, startGround } from "./support/service.ts";
import { atMost, conclude, numberOption } from "./support/table.ts";
import { worstBodies } from "./support/worst-bodies.ts";

const LIMIT_MS = 400_000;
const MEBIBYTE = 1024 * 1024;
const LIVEZ_GOAL_MS = 50;
const MEMORY_GOAL = 4;
/** Time for the memory of one body to be given back before the next. */
const REST_MS = 1500;

const octets = numberOption("mebibytes", 39) * MEBIBYTE;
const rounds = numberOption("rounds", 2);
endWithin(LIMIT_MS);

const ground = await startGround({ hook: false });
const { service, home } = ground;
const probe = await startProbe(service.url, join(home, "probe"));

interface Found {
  status: string;
  livezMs: number;
  times: number;
}

async function send(body: string): Promise<string> {
  const response = await fetch(`${service.url}/v1/emails`, {
    method: "POST",
    body,
    headers: {
      authorization: `Bearer ${service.key}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    },
  }).catch(() => null);
  await response?.arrayBuffer();
  return String(response?.status ?? "cut");
}

async function measure(work: () => Promise<string>, size: number): Promise<Found> {
  await Bun.sleep(REST_MS);
  const before = residentMemory(service.pid());
  forgetPeak(service.pid());
  probe.forget();
  const status = await work();
  // Waits that began with the work end after it.
  await Bun.sleep(100);
  return { status, livezMs: probe.worstMs(), times: (peakMemory(service.pid()) - before) / size };
}

const rows: { name: string; size: number; found: Found }[] = [];
const better = (one: Found, other: Found): Found => (one.livezMs <= other.livezMs ? one : other);
const idle = async () => {
  await Bun.sleep(1500);
  return "";
};
for (const [name, make] of [["idle", () => ""] as const, ...chosen(worstBodies(FROM))]) {
  const body = make(octets);
  const size = Math.max(Buffer.byteLength(body), 1);
  let best: Found | null = null;
  for (let round = 0; round < rounds; round++) {
    const found = await measure(name === "idle" ? idle : () => send(body), size);
    // Other programs of the machine only ever make it longer.
    best = best === null ? found : better(best, found);
  }
  if (best !== null) rows.push({ name, size, found: best });
}
await probe.stop();
await ground.stop();

printMarkdown(
  ["body", "MiB", "answer", "/livez at most, ms", "memory, times its size"],
  rows.map(({ name, size, found: { status, livezMs, times } }) => [
    name,
    (size / MEBIBYTE).toFixed(1),
    status,
    livezMs.toFixed(1),
    name === "idle" ? "" : times.toFixed(1),
  ]),
);
console.log("");
const bodies = rows.filter(({ name }) => name !== "idle");
conclude("bodies", [
  atMost(
    "longest wait of /livez",
    Math.max(...bodies.map(({ found }) => found.livezMs)),
    LIVEZ_GOAL_MS,
    " ms",
  ),
  atMost("most memory, times the body", Math.max(...bodies.map(({ found }) => found.times)), MEMORY_GOAL),
]);
