import { Redis } from "ioredis";
import type { RedisFacts } from "./port.ts";

/** Time it has to take the connection, and to answer, milliseconds. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 4_000;

/** Asks a Redis about itself, over a connection of its own. Throws where it cannot be asked. */
export async function redisFacts(url: string): Promise<RedisFacts> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_MS,
    commandTimeout: ANSWER_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let cause: unknown = null;
  client.on("error", (error) => {
    cause = error;
  });
  try {
    await client.connect();
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
    const why = cause ?? error;
    throw new Error(`Redis cannot be asked: ${why instanceof Error ? why.message : String(why)}`, {
      cause: error,
    });
  } finally {
    client.disconnect();
  }
}
