import { isMessageBarred } from "../../store/messages.ts";

/** Looks at a mail that others take at the same time, too. */
const MAX_LOOKS = 3;

/**
 * Does what looks a mail up and takes it, anew where another has just taken it, or one of its conversation. Null where others keep
 * doing so: whoever brings the mail brings it again.
 */
export async function lookingAnew<Taken>(lookAndTake: () => Promise<Taken>): Promise<Taken | null> {
  for (let look = 0; look < MAX_LOOKS; look++)
    try {
      return await lookAndTake();
    } catch (error) {
      if (!isMessageBarred(error)) throw error;
    }
  return null;
}
