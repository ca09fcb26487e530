import { isBroken } from "./guards.ts";

/** Maximum number of attempts before giving up on a message that other processes keep changing. */
const MAX_ATTEMPTS = 3;

/**
 * Finds where a message belongs and writes it. If another process changed that in between (it stored the same message, or a
 * reply in its thread), starts over.
 * @param isConflict returns true if an error means such a change
 * @returns null after MAX_ATTEMPTS; the peer then gets 451 and sends the message again
 */
export async function retryOnConflict<Written>(
  findAndWrite: () => Promise<Written>,
  isConflict: (error: unknown) => boolean = (error) => isBroken(error, "message_conflict"),
): Promise<Written | null> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++)
    try {
      return await findAndWrite();
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  return null;
}
