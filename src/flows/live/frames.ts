import type { EventType } from "../../core/messages/events.ts";
import { arrivalData, commonData, mostOctets } from "../webhooks/payload.ts";
import type { LoggedDraft, LoggedEvent, LogEntry } from "../../store/events/event-log.ts";
import { getMessage } from "../../store/messages/messages.ts";
import type { LargeContents } from "../../store/contents/large-reads.ts";

/** The events that a stream shows. */
export interface StreamFilter {
  /** Null: all. */
  types: ReadonlySet<EventType> | null;
  messageId: string | null;
  /** True if it also tells of drafts. */
  drafts: boolean;
}

/** Something that a stream shows. */
export type Shown = LoggedEvent | LoggedDraft;

/** Maximum bytes of the events that are made into one piece of a stream, unless one event alone has more. */
export const MAX_PIECE_OCTETS = 256 * 1024;
/** Bytes that an event without a body takes, roughly. */
const EVENT_OCTETS = 1024;

/** Returns the most bytes that an event takes in a stream, roughly. */
export function octetsOf(event: Shown): number {
  return event.type === "inbound_received" ? mostOctets(event) : EVENT_OCTETS;
}

/** Returns what the stream shows of a place in the log. */
export function shownOf({ types, messageId, drafts }: StreamFilter, { event, draft }: LogEntry): Shown[] {
  if (event === null) return drafts && draft !== undefined ? [draft] : [];
  const isWanted =
    (types === null || types.has(event.type)) && (messageId ?? event.messageId) === event.messageId;
  return isWanted ? [event] : [];
}

/**
 * Returns the first entries whose events may have about MAX_PIECE_OCTETS together, at least one. A run of received messages with
 * large bodies must not be in memory at once.
 */
export function firstPiece(entries: readonly LogEntry[]): readonly LogEntry[] {
  let octets = 0;
  const end = entries.findIndex(({ event }, at) => {
    octets += event === null ? 0 : octetsOf(event);
    return at > 0 && octets > MAX_PIECE_OCTETS;
  });
  return end < 0 ? entries : entries.slice(0, end);
}

/** Returns events as server-sent events (HTML Living Standard, section 9.2), empty if there are none. */
export async function framesOf(deps: LargeContents, events: readonly Shown[]): Promise<Uint8Array> {
  const texts: string[] = [];
  for (const event of events) texts.push(await frameOf(deps, event));
  return Buffer.from(texts.join(""));
}

async function frameOf(deps: LargeContents, event: Shown): Promise<string> {
  const { id, type } = event;
  if (event.type === "draft_saved") {
    const draft = { type, draftId: event.draftId, occurredAt: new Date(event.createdAt).toISOString() };
    return `event: ${type}\nid: ${id}\ndata: ${JSON.stringify(draft)}\n\n`;
  }
  const arrival = type === "inbound_received" ? await arrivalOf(deps, event) : {};
  // JSON has no line breaks outside of its strings, and escapes those within.
  const data = JSON.stringify({ type, ...commonData(event, event), ...event.data, ...arrival });
  return `event: ${type}\nid: ${id}\ndata: ${data}\n\n`;
}

async function arrivalOf(deps: LargeContents, event: LoggedEvent): Promise<Record<string, unknown>> {
  const message = await getMessage(deps.db, event.senderId, event.messageId);
  return message === null ? {} : { inbound_received: await arrivalData(deps, message) };
}
