import { AppError, notFound } from "../../core/errors.ts";
import { withinInboxes } from "../../core/key-bounds.ts";
import type { Db } from "../../store/engine/client.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { getThread } from "../../store/threads/threads.ts";
import type { Principal, Route } from "../routing/route.ts";

type Params = Readonly<Record<string, string>>;
type InboxOf = (db: Db, senderId: string, params: Params) => Promise<string | null>;

/** How the inbox of what a path names is found. */
const INBOX_OF: Readonly<Record<"inbox" | "thread" | "message", InboxOf>> = {
  inbox: async (_, __, { id = "" }) => id,
  thread: async (db, senderId, { id = "" }) => (await getThread(db, senderId, id))?.inboxId ?? null,
  message: async (db, senderId, { id = "" }) => (await getMessage(db, senderId, id))?.inboxId ?? null,
};

/**
 * Keeps a key with `inboxIds` to its inboxes. It may use only routes that say how (`inboxes` of the route), so that a new route is
 * refused until it says so.
 * @throws AppError 403 for another route; 404 if what the path names is not in one of its inboxes
 */
export async function requireInbox(
  db: Db,
  { inboxes }: Route,
  { bounds, senderId }: Pick<Principal, "bounds" | "senderId">,
  params: Params,
): Promise<void> {
  if (bounds.inboxIds === null) return;
  if (inboxes === undefined)
    throw new AppError(
      "permission_error",
      "This key reads and answers the mail of its inboxes, and does nothing else.",
      { param: "inboxIds" },
    );
  if (inboxes === "handler") return;
  const id = senderId === null ? null : await INBOX_OF[inboxes](db, senderId, params);
  if (id === null || !withinInboxes(bounds, id)) throw notFound(inboxes);
}
