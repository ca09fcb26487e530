import { useSignal } from "@preact/signals";
import { draftsSaved, useLiveReload } from "../../../api/live.ts";
import { useReloadAfter, useResource } from "../../../api/resource.ts";
import type { DraftRecord } from "../../../api/types.ts";
import { RelativeTime } from "../../../components/time.tsx";
import { Confirm } from "../../../controls/dialog.tsx";
import { Problem } from "../../../controls/problem.tsx";
import { useTask } from "../../../controls/task.ts";
import {
  addressText,
  draftChanges,
  discardDraft,
  readDraft,
  sendDraft,
  storeDraft,
  textOf,
} from "../../../state/draft-record.ts";
import { authorName, isMe } from "../../../state/reader.ts";
import { can } from "../../../state/session.ts";
import { UNDO_SECONDS } from "../../../state/undo.ts";
import { offerUndoOfSend } from "./sending.ts";

interface ProposalProps {
  id: string;
  /** Left out: it begins a conversation, and can only be sent as it is. */
  onEdit?: (record: DraftRecord) => void;
  /** Called when it was sent or discarded. */
  onDone: () => void;
}

/** Fields that the service adds to what is written. */
const GIVEN = ["id", "threadId", "author", "version", "createdAt", "updatedAt"];

/** Minimum time between two reads of drafts because events may have been missed, ms. */
const REFRESH_MS = 1_000;

/** Reads drafts again when this tab or a program saves one, and when events may have been missed. */
export function useDraftReload(reload: () => void): void {
  useReloadAfter(draftChanges.value, reload);
  useReloadAfter(draftsSaved.value, reload);
  useLiveReload(reload, REFRESH_MS, () => false);
}

/** A reply that a program or a colleague proposes. A person sends, edits or discards it. */
export function Proposal({ id, onEdit, onDone }: ProposalProps) {
  const record = useResource(`draft ${id}`, () => readDraft(id));
  const asks = useSignal(false);
  const task = useTask();
  const found = record.value.value;
  if (found === null) return <Problem error={record.error.value} onRetry={record.reload} />;
  const { author, to, cc, subject: heading = "", text, html, templateId, threadId, updatedAt } = found;
  const send = () =>
    task.run(async () => {
      const written = Object.fromEntries(Object.entries(found).filter(([name]) => !GIVEN.includes(name)));
      const whole = { ...written, undoSeconds: UNDO_SECONDS };
      const sent = await sendDraft(await storeDraft(threadId, found, whole));
      offerUndoOfSend(sent.id, addressText(to) || "the sender", async () => {
        await storeDraft(threadId, null, written);
        onDone();
      });
      onDone();
    });
  const discard = async () => {
    await discardDraft(id);
    onDone();
  };
  return (
    <section class="letter proposal" aria-label={`Draft of ${authorName(author)}`}>
      <p class="proposal-head">
        <span class="tag">Draft</span>
        <strong class="cut">{isMe(author.id) ? "You" : authorName(author)}</strong>
        {author.type === "key" ? (
          <span class="quiet">proposes this {threadId === null ? "message" : "reply"}</span>
        ) : null}
        <span class="grow" />
        <RelativeTime at={updatedAt} />
      </p>
      <div class="letter-body">
        {to === undefined && cc === undefined ? null : (
          <p class="quiet">
            to {addressText(to)}
            {cc === undefined ? null : `, cc ${addressText(cc)}`}
          </p>
        )}
        {heading === "" ? null : (
          <p class="strong" dir="auto">
            {heading}
          </p>
        )}
        <pre class="text" dir="auto">
          {templateId === undefined ? (text ?? textOf(html ?? "")) : `Template ${templateId}`}
        </pre>
      </div>
      <Problem error={task.error.value} />
      <p class="reply-tools proposal-tools">
        {can("emails:send") ? (
          <button
            type="button"
            class="button primary small"
            data-send-draft
            disabled={task.busy.value}
            onClick={() => void send()}
          >
            Send draft
          </button>
        ) : null}
        {onEdit === undefined ? null : (
          <button type="button" class="button small" onClick={() => onEdit(found)}>
            Edit
          </button>
        )}
        <button type="button" class="button small" onClick={() => (asks.value = true)}>
          Discard
        </button>
      </p>
      {asks.value ? (
        <Confirm
          title="Discard this draft?"
          verb="Discard draft"
          onConfirm={discard}
          onClose={() => (asks.value = false)}
        >
          <p>The draft of {authorName(author)} is deleted. Nothing is sent.</p>
        </Confirm>
      ) : null}
    </section>
  );
}
