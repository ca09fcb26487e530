/** Measures one process with all roles: messages that are accepted and sent to a sink at the same time. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { startChild } from "./children.ts";
import { copyOf } from "./folder.ts";
import type { LoadOptions, LoadResult } from "./http-load.ts";
import { progressOf } from "./progress.ts";
import { DOMAIN, type Prepared, startService } from "./service.ts";
import { relayTo, startSink } from "./sink.ts";

/** Unmeasured messages first, which are all sent before the measured ones begin. */
const WARM_MAILS = 20_000;
const MAILS = 10_000;
const POLL_MS = 100;
const LIMIT_MS = 100_000;

export interface EndToEnd {
  /** From the first accepted message to the last that is sent. */
  perSecond: number;
  /** Of the accepts, milliseconds. */
  p50: number;
  p99: number;
  /** Microseconds per message. */
  processor: number;
}

/** Accepts messages from so many connections while they are sent. */
export async function acceptToSink(
  home: string,
  { folder: prepared, key }: Prepared,
  { connections, domains }: Pick<LoadOptions, "connections" | "domains">,
): Promise<EndToEnd> {
  const folder = copyOf(prepared);
  const env = { ROLES: "api,smtp,worker", ...relayTo(await startSink(home)) };
  const { child, httpPort } = await startService(folder, env);
  using database = new Database(join(folder, "postrider.db"), { readonly: true });
  const progress = progressOf(database);
  const accept = async (count: number, earlier: number): Promise<LoadResult> => {
    const options: LoadOptions = {
      port: httpPort,
      key,
      from: `news@${DOMAIN}`,
      connections,
      domains,
      warmMs: 0,
      measureMs: 0,
      count,
      earlier,
    };
    const load = [process.execPath, join(import.meta.dir, "http-load.ts"), JSON.stringify(options)];
    const client = await startChild(load, { log: join(home, `load-${Bun.randomUUIDv7()}`) });
    return JSON.parse(await client.finished());
  };
  const sent = async (count: number): Promise<number> => {
    for (const until = performance.now() + LIMIT_MS; performance.now() < until; await Bun.sleep(POLL_MS)) {
      const now = progress.waiting() > 0 ? null : progress.sent();
      if (now !== null && now.ended !== null && now.count >= count) return now.ended;
    }
    throw new Error(`not all of ${count} messages were sent`);
  };
  await accept(WARM_MAILS, 0);
  const warm = await sent(WARM_MAILS);
  const before = child.processor();
  const { p50, p99 } = await accept(MAILS, 1);
  const ended = await sent(WARM_MAILS + MAILS);
  const processor = (child.processor() - before) / MAILS;
  const first = database.query<{ at: number }, [number]>(
    "SELECT min(created_at) AS at FROM messages WHERE created_at > ?",
  );
  const began = first.get(warm)?.at ?? warm;
  await child.end();
  return { perSecond: (1000 * MAILS) / (ended - began), p50, p99, processor };
}
