/**
 * Sends requests of a project that has no part in a run, in a separate process: the work of the run's clients must
 * not make its requests look slow. It answers each message of its parent with the times since the last one.
 */
import { type Load, type LoadTarget, startLoad } from "./load.ts";
import { openLedger } from "./ledger.ts";

/** Arguments of the process. */
export interface BystanderOptions {
  target: LoadTarget;
  ledger: string;
  sendsPerSecond: number;
  mailsPerSecond: number;
}

/** Its answer. */
export interface BystanderTimes {
  /** Milliseconds from each request to its `202` or `250`. */
  send: number[];
  mail: number[];
  /** Answers so far by kind, as `send 202`. */
  answers: [said: string, times: number][];
  /** Requests without an answer; only after `stop`. */
  unanswered: number;
}

const STOP_LIMIT_MS = 60_000;

async function timesOf(load: Load, order: "look" | "stop"): Promise<BystanderTimes> {
  const unanswered = order === "stop" ? await load.stop(STOP_LIMIT_MS) : 0;
  const { send, mail } = load.latencies;
  const times = { send: [...send], mail: [...mail], answers: [...load.answers], unanswered };
  load.forgetLatencies();
  return times;
}

// Only a run starts this program.
const { target, ledger, ...rates } = JSON.parse(process.argv[2] ?? "{}") as BystanderOptions;
const load = startLoad(target, { ...rates, ledger: await openLedger(ledger) });
process.on("message", (order: "look" | "stop") => {
  void timesOf(load, order).then((times) => process.send?.(times));
});
