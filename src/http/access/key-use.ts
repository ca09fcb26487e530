import type { ApiKey } from "../../store/projects/keys.ts";
import { log } from "../../log.ts";

/** Shortest time between two writes of a key's `lastUsedAt`, milliseconds. */
export const KEY_USE_INTERVAL_MS = 60_000;

/** Maximum number of keys that are remembered. Forgetting one costs only one more write. */
const MAX_REMEMBERED_KEYS = 10_000;

/** Records the use of keys and of members' sessions, without delaying requests. */
export interface KeyUse {
  note(key: Pick<ApiKey, "id" | "lastUsedAt">, now: number): void;
  /** Resolves when all started writes are done. */
  settled(): Promise<void>;
}

/**
 * Records when each key was last used, at most once per `KEY_USE_INTERVAL_MS`.
 * @param write writes one key's time in milliseconds; if it fails, that is only logged
 */
export function trackKeyUse(write: (keyId: string, usedAt: number) => Promise<void>): KeyUse {
  const notedAt = new Map<string, number>();
  const writing = new Set<Promise<void>>();
  return {
    note(key, now) {
      const last = Math.max(key.lastUsedAt ?? 0, notedAt.get(key.id) ?? 0);
      // The difference counts in both directions, so that a clock that was set back does not stop the recording.
      if (Math.abs(now - last) < KEY_USE_INTERVAL_MS) return;
      if (notedAt.size >= MAX_REMEMBERED_KEYS) notedAt.clear();
      notedAt.set(key.id, now);
      const written = write(key.id, now)
        .catch((error: unknown) => log("http").warn("lastUsedAt not written", { keyId: key.id, error }))
        .finally(() => writing.delete(written));
      writing.add(written);
    },
    async settled() {
      await Promise.all(writing);
    },
  };
}
