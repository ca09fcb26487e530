import { Redis } from "ioredis";
import type { RedisFacts } from "./port.ts";
import { reason } from "./trouble.ts";

/** Time it has to take the connection, and to answer, milliseconds. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 4_000;

/**
 * Asks for the database that the URL names. The client asks too as it connects, tells of a refusal, and goes on in the first
 * one: with whoever else works there. That one is there always, and who uses it need not be allowed to choose.
 */
export function chooseDatabase(client: Redis): Promise<unknown> {
  const database = client.options.db ?? 0;
  return database === 0 ? client.ping() : client.select(database);
}

/**
 * Why Redis gives nobody the database that the URL names, in its words; null where it does, or cannot be asked now. The first
 * one is always there, and not asked for: a start need not wait for that.
 */
export async function databaseRefusal(url: string): Promise<string | null> {
  const { client } = openOnce(url);
  if ((client.options.db ?? 0) === 0) return null;
  try {
    await client.connect();
    const words = await chooseDatabase(client).then(() => null, reason);
    return words !== null && /^(?:ERR|NOPERM) /.test(words) ? words : null;
  } catch {
    return null;
  } finally {
    client.disconnect();
  }
}

/** A connection that is made once, and what has gone wrong with it. */
function openOnce(url: string): { client: Redis; cause: () => unknown } {
  const client = new Redis(url, {
    lazyConnect: true,
    // One that still loads its file answers these questions, and would be waited for until it is done.
    enableReadyCheck: false,
    connectTimeout: CONNECT_MS,
    commandTimeout: ANSWER_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let cause: unknown = null;
  client.on("error", (error) => {
    cause = error;
  });
  return { client, cause: () => cause };
}

/** Asks a Redis about itself, over a connection of its own. Throws where it cannot be asked. */
export async function redisFacts(url: string): Promise<RedisFacts> {
  const { client, cause } = openOnce(url);
  try {
    await client.connect();
    await chooseDatabase(client);
    const [info, [seconds, micros]] = await Promise.all([client.info(), client.time()]);
    // INFO, not CONFIG GET, which hosted Redis servers refuse.
    const field = (name: string): string =>
      new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "unknown";
    const limit = Number(field("maxmemory"));
    return {
      version: field("redis_version"),
      policy: field("maxmemory_policy"),
      appendOnly: field("aof_enabled") === "1",
      isReplica: field("role") === "slave",
      fullness: limit > 0 ? Number(field("used_memory")) / limit : 0,
      now: Number(seconds) * 1000 + Number(micros) / 1000,
    };
  } catch (error) {
    throw new Error(`Redis cannot be asked: ${reason(cause() ?? error)}`, { cause: error });
  } finally {
    client.disconnect();
  }
}
