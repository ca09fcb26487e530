/** Which bodies have been sent lately. */
export interface BodyRepeats {
  /** Whether the project has sent that body before, as far as is remembered; from now on it has. */
  seen(senderId: string, bytes: Uint8Array): boolean;
}

/** Bodies remembered, a power of two: 32 KiB of hashes. */
export const REMEMBERED_BODIES = 4096;

/**
 * Remembers bodies by a hash of 64 bits each, in the place that the hash names; another body of that place takes it over.
 * A hash that two bodies share does no harm: the later one is kept as if it came again.
 */
export function bodyRepeats(): BodyRepeats {
  const hashes = new BigUint64Array(REMEMBERED_BODIES);
  return {
    seen(senderId, bytes) {
      const hash = Bun.hash.wyhash(bytes, Bun.hash.wyhash(senderId));
      const place = Number(hash & BigInt(REMEMBERED_BODIES - 1));
      const again = hashes[place] === hash;
      hashes[place] = hash;
      return again;
    },
  };
}
