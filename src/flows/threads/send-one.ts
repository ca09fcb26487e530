import { entriesOf } from "../../core/messages/address-input.ts";
import type { SendItem } from "../../core/messages/send-item.ts";
import { type CheckedSend, checkedSend } from "../../core/messages/send-rules.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { Project } from "../../store/projects/projects.ts";
import { commitSend, type PreparedSend, prepareSend, type SendingKey, sending } from "../accept/accept.ts";
import { commitReply, composeReply, replyEntry, type ReplyRequest, withoutDoubles } from "../accept/reply.ts";
import type { Sending } from "../accept/sending.ts";
import type { ThreadEntry } from "../accept/threading.ts";

/** The one who sends. */
export interface SendBy {
  project: Project;
  by: SendingKey;
  /** Milliseconds. */
  now: number;
}

/** A send, and the thread that it goes into. Null: the one that its From and its references lead to. */
export interface PlacedSend {
  send: CheckedSend;
  place: Omit<ThreadEntry, "guard"> | null;
}

/**
 * Prepares a send and commits it. At a conflict with another process, it is composed again.
 * @param record statements for the same write
 * @throws AppError that refuses the send; 429 over the replies that its thread takes in a minute
 */
export function sendOne(
  deps: Sending,
  { project, by, now }: SendBy,
  compose: () => Promise<PlacedSend>,
  record: (prepared: PreparedSend) => readonly Statement[],
): Promise<PreparedSend> {
  return sending(async () => {
    const { send, place } = await compose();
    const into = place === null ? {} : { into: replyEntry(project.id, place, now) };
    const prepared = await prepareSend(deps, project, by, send, into);
    const commit = place === null ? commitSend : commitReply;
    await commit(deps, project, prepared, record(prepared));
    return prepared;
  });
}

/** The subject of a reply in place of the one that follows from the message replied to. */
export type ReplyInstead = Pick<Partial<SendItem>, "subject">;

/** Makes a reply as `composeReply` does, and checks it by all rules. @throws AppError 422 with every issue */
export async function checkedReply(
  deps: Sending,
  { project, now }: Pick<SendBy, "project" | "now">,
  threadId: string,
  request: ReplyRequest,
  instead: ReplyInstead = {},
): Promise<PlacedSend> {
  const { item, ownHeaders, inbox } = await composeReply(deps, project.id, threadId, request, now);
  const checked = checkedSend({ ...item, ...instead }, deps.limits, now, ownHeaders);
  const send = { ...checked, item: withoutDoubles(checked.item, entriesOf(request.cc).length) };
  return { send, place: { threadId, inbox } };
}
