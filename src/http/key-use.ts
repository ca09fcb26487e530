import type { ApiKey } from "../store/keys.ts";
import { log } from "../log.ts";

/** A key's `lastUsedAt` is written at most this often, in milliseconds. */
export const KEY_USE_INTERVAL_MS = 60_000;

/** Keys remembered at most; forgetting them costs a write each, no more. */
const MAX_REMEMBERED_KEYS = 10_000;

/** Notes the use of keys beside the request's path. */
export interface KeyUse {
  note(key: ApiKey, now: number): void;
  /** Resolves when every write begun is done. */
  settled(): Promise<void>;
}

/**
 * Notes when each key was last used, at most once in `KEY_USE_INTERVAL_MS`.
 * @param write writes one key's time in milliseconds; its failure is logged and forgotten
 */
export function trackKeyUse(write: (keyId: string, usedAt: number) => Promise<void>): KeyUse {
  const notedAt = new Map<string, number>();
  const writing = new Set<Promise<void>>();
  return {
    note(key, now) {
      const last = Math.max(key.lastUsedAt ?? 0, notedAt.get(key.id) ?? 0);
      // Either way: a clock that was put back must not keep a use from being noted until it has come round again.
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
