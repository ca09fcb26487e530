import type { Clock } from "../../core/clock.ts";
import { setNewest } from "../../core/newest.ts";

/** Answers kept at most; the longest unused goes first. */
export const MAX_CACHE_ENTRIES = 10_000;
/** A larger answer is not kept, so that hostile zones cannot fill the memory: entries times this is the bound. */
export const MAX_CACHED_OCTETS = 8192;
/** RFC 8767 §4 advises to cap lives at days; a day lets a mistyped TTL heal overnight. */
export const MAX_TTL_SECONDS = 86_400;
/** RFC 2308 §5: one to three hours is a fit bound for negative answers. */
export const MAX_NEGATIVE_TTL_SECONDS = 3600;

interface Entry<Value> {
  value: Value;
  keptAt: number;
  expiresAt: number;
}

export interface TtlCache<Value> {
  get(key: string): Value | undefined;
  /** Keeps a value for that many seconds; 0 keeps nothing. */
  set(key: string, value: Value, ttlSeconds: number): void;
  size(): number;
}

/** A bounded map whose entries die with their time to live. */
export function createTtlCache<Value>(clock: Clock, maxEntries = MAX_CACHE_ENTRIES): TtlCache<Value> {
  const entries = new Map<string, Entry<Value>>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      const now = clock.now();
      // A clock that was put back ends a life rather than to lengthen it.
      if (entry.expiresAt <= now || entry.keptAt > now) return undefined;
      // Put back behind all others, so that the longest unused goes first.
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, ttlSeconds) {
      entries.delete(key);
      if (ttlSeconds <= 0) return;
      const now = clock.now();
      setNewest(entries, key, { value, keptAt: now, expiresAt: now + ttlSeconds * 1000 }, maxEntries);
    },
    size: () => entries.size,
  };
}
