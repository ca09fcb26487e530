/**
 * Predicts messages received per second by the number of cores: `bun bench/model.ts [--rounds=N]`. Measures the parts of
 * a message on one core, and checks the prediction with one and two processes on two cores. Needs two cores.
 */
import { useCores } from "./support/cores.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { openSender, send } from "./support/inbound-mail.ts";
import { printMarkdown } from "./support/inbound-table.ts";
import { subscribed } from "./support/inbound-targets.ts";
import { rounds } from "./support/options.ts";
import { prepareData, type Service, startService } from "./support/service.ts";
import { median } from "./support/table.ts";
import { childrenTime, type ThreadTimes, threadTimes } from "./support/thread-times.ts";
import { freePort } from "../test/support/redis.ts";

const SESSIONS = 20;
const OCTETS = 4096;
const WARM_MAILS = 12_000;
const MAILS = 6000;
const METRICS_TOKEN = "bench-metrics-token-0123456789";
/** Core counts of the prediction. */
const CORES = [1, 2, 4, 8, 16];
/** The cores of the checks, of which a machine needs two. */
const ONE = "0";
const BOTH = "0,1";

/** Microseconds of one message. */
interface Parts {
  /** The event loop: its session, and the statements of its write. */
  loop: number;
  /** Threads that read it. */
  read: number;
  /** Threads of libSQL, which commit. */
  commit: number;
  /** The collector and the compiler. */
  rest: number;
  /** The client, which shares the cores. */
  client: number;
  /** Time in which its commit excludes others, whatever the number of cores. */
  lock: number;
}

interface Run {
  rate: number;
  parts: Parts;
}

const PARTS = ["loop", "read", "commit", "rest", "client", "lock"] as const;

const home = benchFolder();
const prepared = await subscribed(await prepareData(home));
const sender = await openSender(home, prepared.inbox, false);
const mail = await sender.mail("text", OCTETS);

/** Seconds of all commits of a process so far. */
async function commitSeconds({ url }: Service): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const found = /^postrider_commit_duration_seconds_sum(?:\{[^}]*\})? (\S+)$/m.exec(await response.text());
  if (found === null) throw new Error("there is no figure of commits");
  return Number(found[1]);
}

/** Sends messages over kept sessions to processes that share a port. Each list names cores, as taskset does. */
async function measure(processes: number, cores: string, clientCores: string): Promise<Run> {
  useCores(clientCores);
  const folder = copyOf(prepared.folder);
  const port = freePort();
  const env = {
    ROLES: "smtp",
    DNS_SERVERS: sender.dns.address,
    METRICS_TOKEN,
    SMTP_PORT: String(port),
    SMTP_PORT_SHARED: "1",
  };
  const services: Service[] = [];
  for (let n = 0; n < processes; n++)
    services.push(await startService(folder, env, ["taskset", "-c", cores]));
  const load = { port, sessions: SESSIONS, kept: true, mail };
  await send(home, { ...load, mails: processes * WARM_MAILS });
  const look = async (): Promise<Parts> => {
    const commits = await Promise.all(services.map(commitSeconds));
    const threads = services.map(({ child }) => threadTimes(child.pid));
    return {
      loop: sum(threads, "loop"),
      read: sum(threads, "read"),
      commit: sum(threads, "commit"),
      rest: sum(threads, "rest"),
      client: childrenTime(),
      lock: 1e6 * commits.reduce((all, one) => all + one, 0),
    };
  };
  const before = await look();
  const seconds = await send(home, { ...load, mails: MAILS });
  const after = await look();
  await Promise.all(services.map(({ child }) => child.end()));
  return { rate: MAILS / seconds, parts: combined(PARTS, (part) => (after[part] - before[part]) / MAILS) };
}

function sum(threads: readonly ThreadTimes[], part: keyof ThreadTimes): number {
  return threads.reduce((all, times) => all + times[part], 0);
}

function combined(parts: readonly (keyof Parts)[], of: (part: keyof Parts) => number): Parts {
  // Each part has a value, because the list has all of them.
  return Object.fromEntries(parts.map((part) => [part, of(part)])) as unknown as Parts;
}

/** Returns the medians of some rounds. */
async function rounded(processes: number, cores: string, clientCores: string): Promise<Run> {
  const runs: Run[] = [];
  for (let n = 0; n < rounds(1); n++) runs.push(await measure(processes, cores, clientCores));
  const parts = combined(PARTS, (part) => median(runs.map((run) => run.parts[part])));
  return { rate: median(runs.map(({ rate }) => rate)), parts };
}

/** Messages per second that each limit allows. */
function limits(parts: Parts, cores: number, processes: number, withClient: boolean) {
  const { loop, read, commit, rest, client, lock } = parts;
  return {
    processors: (1e6 * cores) / (loop + read + commit + rest + (withClient ? client : 0)),
    "event loops": (1e6 * processes) / loop,
    commits: 1e6 / lock,
  };
}

/** Predicts a rate, and names the limit that makes it. */
function predicted(...[parts, cores, processes, withClient]: Parameters<typeof limits>) {
  const [[limit, rate] = ["", 0]] = Object.entries(limits(parts, cores, processes, withClient)).sort(
    ([, a], [, b]) => a - b,
  );
  return { limit, rate };
}

const alone = await rounded(1, ONE, "1");
const { parts } = alone;
printMarkdown(
  ["part of a message", "µs"],
  PARTS.map((part) => [part, parts[part].toFixed(0)]),
);
const checks = [
  { processes: 1, cores: 1, withClient: false, run: alone },
  { processes: 1, cores: 2, withClient: true, run: await rounded(1, BOTH, BOTH) },
  { processes: 2, cores: 2, withClient: true, run: await rounded(2, BOTH, BOTH) },
];
printMarkdown(
  ["cores", "processes", "predicted msg/s", "by", "measured", "measured / predicted"],
  checks.map(({ processes, cores, withClient, run }) => {
    const { limit, rate } = predicted(parts, cores, processes, withClient);
    const error = (run.rate / rate).toFixed(2);
    return [cores, processes, rate.toFixed(0), limit, run.rate.toFixed(0), error].map(String);
  }),
);
printMarkdown(
  ["cores", "one process, msg/s", "by", "a process per core, msg/s", "by"],
  CORES.map((cores) => {
    const [one, many] = [predicted(parts, cores, 1, false), predicted(parts, cores, cores, false)];
    return [String(cores), one.rate.toFixed(0), one.limit, many.rate.toFixed(0), many.limit];
  }),
);
sender.dns.stop();
