/**
 * The keys of one purpose: the first one makes, and all of them open. What is in it changes while the process runs, when the
 * master key is rotated.
 */
export interface KeyRing {
  keys: readonly [Uint8Array, ...Uint8Array[]];
}

/** A key that may have predecessors. */
export type Key = Uint8Array | KeyRing;

/** Returns the key that makes. */
export function makingKey(key: Key): Uint8Array {
  return key instanceof Uint8Array ? key : key.keys[0];
}

/** Returns what the first of the keys opens; null if none does. */
export function opened<Value>(key: Key, open: (one: Uint8Array) => Value | null): Value | null {
  if (key instanceof Uint8Array) return open(key);
  for (const one of key.keys) {
    const value = open(one);
    if (value !== null) return value;
  }
  return null;
}
