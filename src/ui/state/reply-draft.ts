import { type Signal, signal } from "@preact/signals";
import { post } from "../api/client.ts";
import { type ApiError, asApiError } from "../api/error.ts";
import type { DraftRecord } from "../api/types.ts";
import { after } from "../browser/clock.ts";
import { openReplies } from "./draft.ts";
import {
  bodyOf,
  discardDraft,
  isEmpty,
  type ReplyFields,
  type Saved,
  sendDraft,
  storeDraft,
} from "./draft-record.ts";
import { can } from "./session.ts";
import { UNDO_SECONDS } from "./undo.ts";

// Keeps a reply that is being written on the server. A person who closes the tab, or continues on another machine, would miss it.
// A copy in the browser's storage was tried first: it is lost on another machine, and colleagues do not see it.

/** A reply is saved after a pause in typing of this length, ms. */
const PAUSE_MS = 800;
/** Base64 characters of files that a draft still holds. A reply with more is kept in this tab until it is sent. */
const MAX_DRAFT_FILE_CHARS = 700_000;
/** Maximum number of replies that this tab keeps open. */
const MAX_OPEN = 40;

/**
 * `none`: nothing is written. `unsaved`: it waits for a pause. `changed`: another window has saved the draft since. `gone`: it
 * was sent or discarded elsewhere. `failed`: saving failed, and is tried again after the next change. `local`: it is not saved.
 */
export type DraftState = "none" | "unsaved" | "saving" | "saved" | "changed" | "gone" | "failed" | "local";

/** A reply to a thread that is being written. */
export interface ReplyDraft {
  fields: Signal<ReplyFields>;
  /** The draft that the service has of it. */
  saved: Signal<Saved | null>;
  state: Signal<DraftState>;
  error: Signal<ApiError | null>;
  /** Begins a reply to another message, if nothing is written yet. */
  begin(first: ReplyFields): void;
  write(changes: Partial<ReplyFields>): void;
  /** Saves at once what is not saved yet. `closing`: the page may be gone before the answer. */
  save(closing?: boolean): Promise<void>;
  /** Replaces it with a draft of the service. */
  take(record: DraftRecord, fields: ReplyFields): void;
  /** After `changed` or `gone`: saves what is written here as a new draft. */
  keep(): Promise<void>;
  discard(): Promise<void>;
  /** Sends it with these changes. The message and the end of the draft are one commit. */
  send(changes: Partial<ReplyFields>): Promise<{ id: string }>;
}

/** Returns whether the reader's key saves what they write, and sends it from there. */
export function keepsDrafts(): boolean {
  return can("drafts:write") && can("emails:send");
}

/** Returns the reply to a thread that is open in this tab, or begins one. */
export function replyDraft(threadId: string, first: ReplyFields): ReplyDraft {
  const open = openReplies as Map<string, ReplyDraft>;
  const known = open.get(threadId) ?? createReplyDraft(threadId, first);
  open.delete(threadId);
  open.set(threadId, known);
  for (const [oldest, { state }] of open) {
    if (open.size <= MAX_OPEN) break;
    if (state.peek() === "none" || state.peek() === "saved") open.delete(oldest);
  }
  return known;
}

function createReplyDraft(threadId: string, first: ReplyFields): ReplyDraft {
  const fields = signal(first);
  const saved = signal<Saved | null>(null);
  const state = signal<DraftState>("none");
  const error = signal<ApiError | null>(null);
  let changes = 0;
  let cancelSave = () => {};
  let running: Promise<void> | null = null;

  const isKept = () =>
    keepsDrafts() &&
    fields.peek().files.reduce((sum, { content }) => sum + content.length, 0) <= MAX_DRAFT_FILE_CHARS;
  const store = async (body: object, keepalive: boolean) => {
    const revision = changes;
    state.value = "saving";
    try {
      const { id, version } = await storeDraft(threadId, saved.peek(), body, keepalive);
      saved.value = { id, version };
      error.value = null;
      state.value = changes === revision ? "saved" : "unsaved";
    } catch (thrown) {
      error.value = asApiError(thrown);
      state.value = error.value.status === 409 ? "changed" : error.value.status === 404 ? "gone" : "failed";
    }
  };
  /** Runs one request after the other, because each needs the version that the one before has made. */
  const inTurn = async (work: () => Promise<void>) => {
    cancelSave();
    while (running !== null) await running;
    running = work();
    await running.finally(() => {
      running = null;
    });
  };
  const save = (closing = false) =>
    inTurn(async () => {
      if (state.peek() !== "unsaved" && state.peek() !== "failed") return;
      if (isKept()) await store(bodyOf(fields.peek()), closing);
      else state.value = "local";
    });
  const reset = (next: ReplyFields, record: DraftRecord | null) => {
    cancelSave();
    fields.value = next;
    saved.value = record;
    error.value = null;
    state.value = record === null ? "none" : "saved";
  };
  /** Stores the whole message as the draft, and sends that. */
  const sendStored = async (request: object) => {
    await inTurn(() => store(request, false));
    const stored = saved.peek();
    if (state.peek() !== "saved" || stored === null) throw error.peek();
    // The draft has the quote and the signature now. If the send is refused, the next pause stores what is written.
    state.value = "unsaved";
    return sendDraft(stored);
  };
  /** Sends what no draft can hold, and deletes the draft of what was written before. */
  const sendWhole = async (request: object) => {
    const path = `/v1/threads/${encodeURIComponent(threadId)}/reply`;
    const sent = await post<{ id: string }>(path, request);
    const known = saved.peek();
    // The message is sent, so a draft that stays is no failure of that.
    if (known !== null) await discardDraft(known.id).catch(() => {});
    return sent;
  };
  const stuck = () => state.peek() === "changed" || state.peek() === "gone";
  return {
    fields,
    saved,
    state,
    error,
    save,
    write: (more) => {
      fields.value = { ...fields.peek(), ...more };
      changes++;
      if (stuck()) return;
      cancelSave();
      if (isEmpty(fields.peek()) && saved.peek() === null) state.value = "none";
      else if (state.peek() !== "saving") state.value = "unsaved";
      cancelSave = after(PAUSE_MS, () => void save());
    },
    begin: (next) => {
      if (state.peek() === "none" && fields.peek().messageId !== next.messageId) fields.value = next;
    },
    take: (record, next) => reset(next, record),
    keep: async () => {
      saved.value = null;
      state.value = "unsaved";
      await save();
    },
    discard: async () => {
      const known = saved.peek();
      reset(first, null);
      if (known !== null) await discardDraft(known.id);
    },
    send: async (more) => {
      const request = { ...bodyOf({ ...fields.peek(), ...more }), undoSeconds: UNDO_SECONDS };
      const sent = isKept() ? await sendStored(request) : await sendWhole(request);
      reset(first, null);
      return sent;
    },
  };
}
