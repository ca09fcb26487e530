import { isMessageBarred } from "../store/messages.ts";

/** Looks at a mail that others take or send at the same time, too. */
const MAX_LOOKS = 3;

/**
 * Does what looks up where a mail belongs and writes it, anew where others have just changed that: another has been taken, or one of
 * its conversation. Null where they keep doing so: whoever brings the mail brings it again.
 * @param isOvertaken whether an error says so
 */
export async function lookingAnew<Written>(
  lookAndWrite: () => Promise<Written>,
  isOvertaken: (error: unknown) => boolean = isMessageBarred,
): Promise<Written | null> {
  for (let look = 0; look < MAX_LOOKS; look++)
    try {
      return await lookAndWrite();
    } catch (error) {
      if (!isOvertaken(error)) throw error;
    }
  return null;
}
