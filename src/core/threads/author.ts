import { currentActor } from "../actor.ts";

/** The one who wrote a note or a draft. */
export interface Author {
  type: string;
  id: string | null;
  /** Address of a member, name of a key. */
  name: string | null;
}

/** Returns the one who acts now as an author. */
export function currentAuthor(): Author {
  const { type, id, name } = currentActor();
  return { type, id, name };
}
