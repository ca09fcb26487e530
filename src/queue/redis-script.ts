import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** Runs a script on one key; rejects where Redis cannot. A script runs alone on the server, for all processes at once. */
export type Script = (client: Redis, key: string, ...args: (string | number)[]) => Promise<unknown>;

/** A script by its text; the server is sent its digest, and the text where it does not know that. */
export function script(text: string): Script {
  const sha = createHash("sha1").update(text).digest("hex");
  return async (client, key, ...args) => {
    try {
      return await client.evalsha(sha, 1, key, ...args);
    } catch (error) {
      // A server that was started or flushed anew does not know the script yet.
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return client.eval(text, 1, key, ...args);
    }
  };
}
