/**
 * Runs the service on three hosts, ends each of its parts in turn under load, and prints what clients see of it:
 * `SQLD=/path/to/sqld bun bench/prove/three-hosts.ts [--away=10] [--rate=20] [--only=PART] [--control]`.
 * The hosts are network namespaces, so it needs root and `ip netns`. With `--control` the check expects a send and a message that
 * were never brought: the run must then end with 1.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { NO_SQLD } from "../../test/support/sqld.ts";
import "../support/end-on-signal.ts";
import { printMarkdown } from "../support/inbound-table.ts";
import { chosen } from "../support/options.ts";
import { check, checkedFindings, drained } from "./support/check.ts";
import { enterHosts, type Host, hostsMissing } from "./support/hosts.ts";
import { type Part, startInstallation } from "./support/installation.ts";
import { type Ledger, openLedger, type Promised, recordNever } from "./support/ledger.ts";
import { startLoad } from "./support/load.ts";
import { atLeast, conclude, fact, isControl, none, numberOption } from "./support/table.ts";

const AWAY_MS = numberOption("away", 10) * 1000;
const RATE = numberOption("rate", 20);
const CALM_MS = 4000;
/** Longer than a lease, after which the work of a host that is cut off goes to another. */
const SETTLE_LIMIT_MS = 120_000;
const SYNC_MS = 2000;
const READ_PAUSE_MS = 500;
const READ_LIMIT_MS = 2000;

const missing = NO_SQLD ?? (await hostsMissing());
if (missing !== null) {
  console.log(`three hosts: skipped, ${missing}`);
  process.exit(0);
}
const installation = await startInstallation((await enterHosts(3)) as [Host, Host, Host]);
const { ground, target, nextUrl, stored, parts } = installation;

type Kind = Promised["kind"];

/** The longest time without a promise of each kind, milliseconds. */
class Gaps {
  readonly #last = { send: performance.now(), mail: performance.now() };
  readonly #longest = { send: 0, mail: 0 };

  /** Returns a ledger that tells of each promise. */
  watch(ledger: Ledger): Ledger {
    return {
      ...ledger,
      record: (promised) => {
        this.#look(promised.kind);
        this.#last[promised.kind] = performance.now();
        return ledger.record(promised);
      },
    };
  }

  begin(): void {
    for (const kind of ["send", "mail"] as const) {
      this.#last[kind] = performance.now();
      this.#longest[kind] = 0;
    }
  }

  longest(kind: Kind): number {
    this.#look(kind);
    return this.#longest[kind];
  }

  #look(kind: Kind): void {
    this.#longest[kind] = Math.max(this.#longest[kind], performance.now() - this.#last[kind]);
  }
}

const gaps = new Gaps();
const ledger = gaps.watch(await openLedger(join(ground.home, "ledger")));
if (isControl()) await recordNever(ledger, "send", "mail");
const load = startLoad(target, { sendsPerSecond: RATE, mailsPerSecond: RATE / 2, ledger });

/** Returns the answers of one kind since the state before, as `202: 100, 503: 3`. */
function answersSince(before: ReadonlyMap<string, number>, kind: Kind): string {
  return [...load.answers]
    .filter(([said, count]) => said.startsWith(`${kind} `) && count > (before.get(said) ?? 0))
    .map(([said, count]) => `${said.slice(kind.length + 1)}: ${count - (before.get(said) ?? 0)}`)
    .join(", ");
}

/** Reads a path twice a second, each time at the other API, until `done`. Returns the answers counted. */
async function reading(path: string, done: () => boolean): Promise<string> {
  const counts = new Map<string, number>();
  const headers = { authorization: `Bearer ${target.key}` };
  while (!done()) {
    const answer = await fetch(nextUrl() + path, {
      headers,
      signal: AbortSignal.timeout(READ_LIMIT_MS),
    }).then(
      async (response) => {
        await response.arrayBuffer();
        return String(response.status);
      },
      () => "broken",
    );
    counts.set(answer, (counts.get(answer) ?? 0) + 1);
    await Bun.sleep(READ_PAUSE_MS);
  }
  return [...counts].map(([said, count]) => `${said}: ${count}`).join(", ");
}

/** Returns the longest time from acceptance to the sink of the messages accepted since then, milliseconds. */
function slowestDelivery(since: number): number {
  using db = new Database(ground.file, { readonly: true });
  const sent = db
    .query<{ email: string; at: number }, [number]>(
      `SELECT r.email, m.created_at AS at FROM messages m JOIN recipients r ON r.message_id = m.id
        WHERE m.direction = 'outbound' AND m.created_at >= ?`,
    )
    .all(since);
  return Math.max(
    0,
    ...sent.map(({ email, at }) => (ground.sink.received.get(email)?.times[0] ?? Infinity) - at),
  );
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Ends a part under load and brings it back. Returns its line of the table. */
async function endOf(name: string, { end, back }: Part): Promise<string[]> {
  await Bun.sleep(CALM_MS);
  const before = new Map(load.answers);
  const since = Date.now();
  gaps.begin();
  let isBack = false;
  const lists = reading("/v1/emails?limit=10", () => isBack);
  const object = reading(stored, () => isBack);
  await end();
  await Bun.sleep(AWAY_MS);
  isBack = true;
  const read = [await lists, await object];
  await back();
  const backAt = performance.now();
  await Bun.sleep(CALM_MS);
  const sends = [answersSince(before, "send"), seconds(gaps.longest("send"))];
  const mails = [answersSince(before, "mail"), seconds(gaps.longest("mail"))];
  load.pause();
  const promised = ledger.entries().filter(({ id }) => !isControl() || !/_0+$/.test(id));
  await drained(ground, promised, SETTLE_LIMIT_MS);
  const settledAfter = performance.now() - backAt;
  load.resume();
  return [name, ...sends, ...mails, ...read, seconds(slowestDelivery(since)), seconds(settledAfter)];
}

const lines: string[][] = [];
for (const [name, part] of chosen(Object.entries(parts))) {
  lines.push(await endOf(name, part));
  console.error(lines.at(-1)?.join(" | "));
}
const unanswered = await load.stop(SETTLE_LIMIT_MS);
await ledger.close();
const promises = ledger.entries();
await drained(ground, promises, isControl() ? CALM_MS : SETTLE_LIMIT_MS);
// By then each replica has the writes of other processes.
await Bun.sleep(SYNC_MS);
const checked = await check(ground, promises);
printMarkdown(
  [
    "away",
    "sends",
    "longest without a 202, s",
    "mail in",
    "longest without a 250, s",
    "lists",
    "content in the object store",
    "slowest delivery, s",
    "all settled after, s",
  ],
  lines,
);
await installation.stop();
conclude(
  `three hosts, ${RATE} sends and ${RATE / 2} messages a second, each part away for ${AWAY_MS / 1000} s`,
  [
    ...checkedFindings(checked),
    atLeast("sends answered 202, for each part", checked.sends / lines.length, (RATE * CALM_MS) / 1000),
    fact("recipients with several copies", checked.duplicates.length),
    none("items never answered", unanswered),
  ],
);
