import { firstChars } from "../../core/first-chars.ts";
import { Type } from "@sinclair/typebox";
import { turn } from "../../core/turn.ts";
import { type RecordDeps, readRecord } from "../../flows/read/record.ts";
import { MessageView, showMessage } from "./message.ts";

/** Characters of one body that a conversation shows; the message's own record has all of it. */
export const MAX_BODY_CHARS = 256 * 1024;
/**
 * Characters of bodies and header fields in one answer. Anybody may write to an inbox: a hundred mails of 25 MiB in one
 * thread must not become one answer of gigabytes.
 */
export const MAX_CONVERSATION_CHARS = 8 * 1024 * 1024;
/** Events of one message that a conversation shows, the first: a mail to many that is opened often has tens of thousands. */
export const MAX_EVENTS_SHOWN = 300;

/** A message as it is shown within its thread. */
export const ThreadMessageView = Type.Object(
  {
    ...MessageView.properties,
    truncated: Type.Optional(
      Type.Literal(true, {
        description: "Something is cut or left out here; `GET /v1/emails/{id}` has all of it.",
      }),
    ),
  },
  { title: "ThreadMessage" },
);

const BODIES = ["text", "html", "replyText"] as const;

/**
 * The records of messages with their bodies cut. Give the newest first: they are shown whole sooner than older ones.
 */
export async function showConversation(
  deps: RecordDeps,
  senderId: string,
  ids: readonly string[],
): Promise<Record<string, unknown>[]> {
  const shown: Record<string, unknown>[] = [];
  let room = MAX_CONVERSATION_CHARS;
  // One after another, so that only one is in memory as a whole.
  for (const id of ids) {
    const record = await readRecord(deps, senderId, id, { mostEvents: MAX_EVENTS_SHOWN });
    // Reads of a file are synchronous: without this a hundred records would hold everybody up together.
    await turn();
    if (record === null) continue;
    const { message, used } = withinRoom(showMessage(record), room);
    room -= used;
    shown.push(record.moreEvents ? { ...message, truncated: true } : message);
  }
  return shown;
}

function withinRoom(
  message: Record<string, unknown>,
  room: number,
): { message: Record<string, unknown>; used: number } {
  const changed: Record<string, unknown> = {};
  let used = 0;
  for (const name of BODIES) {
    const body = message[name];
    if (typeof body !== "string") continue;
    const kept = Math.max(0, Math.min(MAX_BODY_CHARS, room - used));
    if (body.length > kept) changed[name] = firstChars(body, kept);
    used += Math.min(body.length, kept);
  }
  const fields = JSON.stringify(message.headers).length;
  if (fields > room - used) changed.headers = {};
  else used += fields;
  return Object.keys(changed).length === 0
    ? { message, used }
    : { message: { ...message, ...changed, truncated: true }, used };
}
