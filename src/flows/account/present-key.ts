import { timingSafeEqual } from "node:crypto";
import type { Db } from "../../store/engine/client.ts";
import { findKeyByHash, type PresentedKey } from "../../store/projects/keys.ts";

/**
 * Returns the key whose secret has that hash, or null if it is unknown or revoked. It is read for every request, so a
 * revocation holds from the next one on.
 */
export async function presentKey(db: Db, hash: string): Promise<PresentedKey | null> {
  const presented = await findKeyByHash(db, hash);
  // Compares in constant time, because the time of an index lookup could tell how much of a hash was right.
  if (presented === null || !timingSafeEqual(Buffer.from(presented.secretHash), Buffer.from(hash)))
    return null;
  return presented.key.revokedAt === null ? presented : null;
}
