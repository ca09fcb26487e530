import type { Clock } from "../../core/time/clock.ts";
import { setBounded } from "../../core/collections.ts";

/** Maximum number of answers cached. If the cache is full, the one unused for longest is evicted. */
export const MAX_CACHE_ENTRIES = 10_000;
/** Larger answers are not cached, so that hostile zones cannot fill the memory. */
export const MAX_CACHED_OCTETS = 8192;
/** RFC 8767 §4 advises a limit of days. With one day, a mistyped TTL is gone the next day. */
export const MAX_TTL_SECONDS = 86_400;
/** RFC 2308 §5: one to three hours is a sensible limit for negative answers. */
export const MAX_NEGATIVE_TTL_SECONDS = 3600;

interface Entry<Value> {
  value: Value;
  expiresAt: number;
}

export interface TtlCache<Value> {
  get(key: string): Value | undefined;
  /** Caches a value for a number of seconds; with 0, does not. */
  set(key: string, value: Value, ttlSeconds: number): void;
  size(): number;
}

/** Creates a bounded cache whose entries expire. */
export function createTtlCache<Value>(clock: Clock, maxEntries = MAX_CACHE_ENTRIES): TtlCache<Value> {
  const entries = new Map<string, Entry<Value>>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      if (entry.expiresAt <= clock.elapsed()) return undefined;
      // Moves the entry to the end, so that the one unused for longest is evicted first.
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, ttlSeconds) {
      entries.delete(key);
      if (ttlSeconds <= 0) return;
      setBounded(entries, key, { value, expiresAt: clock.elapsed() + ttlSeconds * 1000 }, maxEntries);
    },
    size: () => entries.size,
  };
}
