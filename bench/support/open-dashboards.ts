import { waitAfter } from "../../src/ui/api/pace.ts";

/**
 * Keeps dashboards open from a process of its own, until it is ended: each follows the project's events and reads again what its
 * page shows, as often as the page does. Half of them show Messages, half Home. Prints `ready` when all streams are open, and at
 * the end one JSON line.
 */
export interface DashboardsOptions {
  url: string;
  key: string;
  count: number;
}

export interface DashboardsResult {
  /** Octets of the streams. */
  octets: number;
  /** Requests that read a page again. */
  reads: number;
}

/** Reads of one page, and the time between two of them at least, as in `src/ui`. */
const MESSAGES: readonly (readonly [ms: number, paths: readonly string[]])[] = [
  [150, ["/v1/emails?limit=50"]],
  [1500, ["/v1/threads?unread=true&limit=100"]],
];
const HOME: typeof MESSAGES = [
  [
    1500,
    [
      "/v1/emails?direction=outbound&limit=1",
      "/v1/emails?direction=inbound&limit=1",
      "/v1/webhooks?limit=1",
      "/v1/domains?limit=100",
      "/v1/emails?status=delivered&direction=outbound&limit=1",
    ],
  ],
  [1500, ["/v1/threads?unread=true&limit=100"]],
  [2000, ["/v1/stats?interval=day"]],
  [
    3000,
    ["bounced", "complained", "failed", "rejected", "rendering_failure", "delivery_delayed"].map(
      (status) => `/v1/emails?status=${status}&limit=6`,
    ),
  ],
];
const EVENT = Buffer.from("event: ");

const { url, key, count }: DashboardsOptions = JSON.parse(process.argv[2] ?? "{}");
const headers = { authorization: `Bearer ${key}` };
const result: DashboardsResult = { octets: 0, reads: 0 };

async function get(path: string): Promise<void> {
  const answer = await fetch(url + path, { headers });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  result.reads++;
}

/** Returns a function that is told of events and reads the paths again. */
function reader(ms: number, paths: readonly string[]): (events: number) => void {
  let events = 0;
  let last = performance.now();
  let wait = ms;
  let waits = false;
  const run = async () => {
    waits = false;
    wait = waitAfter(events, performance.now() - last, ms);
    last = performance.now();
    events = 0;
    await Promise.all(paths.map(get));
  };
  return (more) => {
    events += more;
    if (waits) return;
    waits = true;
    setTimeout(run, Math.max(0, last + wait - performance.now()));
  };
}

async function open(page: typeof MESSAGES): Promise<void> {
  const answer = await fetch(`${url}/v1/events/stream`, { headers });
  if (answer.body === null || !answer.ok) throw new Error(`stream: ${answer.status}`);
  const readers = page.map(([ms, paths]) => reader(ms, paths));
  void follow(answer.body, readers);
}

async function follow(
  body: ReadableStream<Uint8Array>,
  readers: readonly ((events: number) => void)[],
): Promise<void> {
  for await (const piece of body) {
    result.octets += piece.length;
    const events = countEvents(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    if (events > 0) for (const tell of readers) tell(events);
  }
}

function countEvents(piece: Buffer): number {
  let events = 0;
  for (let at = piece.indexOf(EVENT); at >= 0; at = piece.indexOf(EVENT, at + EVENT.length)) events++;
  return events;
}

process.on("SIGTERM", () => {
  console.log(JSON.stringify(result));
  process.exit(0);
});
for (let at = 0; at < count; at++) await open(at % 2 === 0 ? MESSAGES : HOME);
console.log("ready");
