import type { Redis } from "ioredis";
import type { RedisFacts } from "./port.ts";
import { reason } from "./limited-log.ts";
import { redisLibrary } from "./redis.ts";

/** Time to connect, and time to answer, milliseconds. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 4_000;

/**
 * Selects the database that the URL names. The client also selects it when it connects. If that is refused, it only
 * logs this and stays in database 0, among another application's keys. Database 0 always exists, and a user may not
 * have the right to SELECT, so it is only pinged.
 */
export function chooseDatabase(client: Redis): Promise<unknown> {
  const database = client.options.db ?? 0;
  return database === 0 ? client.ping() : client.select(database);
}

/**
 * Returns Redis's words if it refuses the database that the URL names. Returns null if it does not, or cannot be
 * asked now. Database 0 always exists, so the start does not wait for an answer about it.
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

/** Opens a connection that does not reconnect, with its last error. */
function openOnce(url: string): { client: Redis; cause: () => unknown } {
  const client = new (redisLibrary().Redis)(url, {
    lazyConnect: true,
    // A Redis that still loads its file can answer these questions. The check would wait until it has loaded.
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

/** Reads a Redis server's facts over a separate connection. Throws if the server does not answer. */
export async function redisFacts(url: string): Promise<RedisFacts> {
  const { client, cause } = openOnce(url);
  try {
    await client.connect();
    await chooseDatabase(client);
    const [info, [seconds, micros]] = await Promise.all([client.info(), client.time()]);
    // CONFIG GET would give these too, but hosted Redis servers refuse it.
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
