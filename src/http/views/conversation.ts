import { firstChars } from "../../core/text.ts";
import { Type } from "@sinclair/typebox";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { readRecord } from "../../flows/read/record.ts";
import { MessageView, showMessage } from "./message.ts";
import type { LargeContents } from "../../store/contents/large-reads.ts";

/** Maximum characters of one body in a thread. The message's own record has all of it. */
export const MAX_BODY_CHARS = 256 * 1024;
/**
 * Characters of bodies and header fields in one answer. Anyone can write to an inbox, so a hundred messages of 25 MiB
 * in one thread must not become one answer of gigabytes.
 */
export const MAX_CONVERSATION_CHARS = 8 * 1024 * 1024;
/**
 * Events of one message that a thread shows, the oldest ones. A message to many recipients may have tens of
 * thousands.
 */
export const MAX_EVENTS_SHOWN = 300;

/** A message as its thread shows it: without links and codes, because a hundred messages would be parsed for them. */
export const ThreadMessageView = Type.Object(
  {
    ...Type.Omit(MessageView, ["links", "codes"]).properties,
    truncated: Type.Optional(
      Type.Literal(true, {
        description: "True if something is shortened or left out. `GET /v1/emails/{id}` has all of it.",
      }),
    ),
  },
  { title: "ThreadMessage" },
);

const BODIES = ["text", "html", "replyText"] as const;

/**
 * Returns the records of messages with shortened bodies. The newest must come first, because the first ones are shown
 * with the most text.
 */
export async function showConversation(
  deps: LargeContents,
  senderId: string,
  ids: readonly string[],
): Promise<Record<string, unknown>[]> {
  const shown: Record<string, unknown>[] = [];
  let room = MAX_CONVERSATION_CHARS;
  // Reads one message after another, so that only one is in memory as a whole.
  for (const id of ids) {
    const record = await readRecord(deps, senderId, id, { mostEvents: MAX_EVENTS_SHOWN });
    // Reads of a file are synchronous, so other requests are served between two records.
    await yieldToEventLoop();
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
