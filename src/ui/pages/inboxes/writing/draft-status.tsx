import { Problem } from "../../../controls/problem.tsx";
import { useTask } from "../../../controls/task.ts";
import { fieldsOf, readDraft } from "../../../state/draft-record.ts";
import { keepsDrafts, type ReplyDraft } from "../../../state/reply-draft.ts";

const WORDS: Readonly<Partial<Record<ReplyDraft["state"]["value"], string>>> = {
  unsaved: "Not saved yet",
  saving: "Saving…",
  saved: "Draft saved",
  failed: "The draft could not be saved",
  local: "Too large to be saved as a draft, so it stays in this tab",
};

const KEPT_HERE = "Your key saves no drafts, so it stays in this tab";

/** Says whether what is written is saved, and asks what to do if another window has changed it. */
export function DraftStatus({ draft }: { draft: ReplyDraft }) {
  const task = useTask();
  const state = draft.state.value;
  const load = () =>
    task.run(async () => {
      const record = await readDraft(draft.saved.peek()?.id ?? "");
      draft.take(record, fieldsOf(record, draft.fields.peek()));
    });
  const isClash = state === "changed" || state === "gone";
  return (
    <div class="draft-status" role="status">
      {isClash ? (
        <>
          <p>
            {state === "changed"
              ? "Another window has changed this draft, so yours is not saved."
              : "This draft was sent or discarded in another window."}
          </p>
          <p>
            {state === "changed" ? (
              <button type="button" class="button small" onClick={() => void load()}>
                Load the other version
              </button>
            ) : null}{" "}
            <button type="button" class="button small" onClick={() => void draft.keep()}>
              Keep mine as a new draft
            </button>
          </p>
        </>
      ) : (
        <span class="quiet">{state === "local" && !keepsDrafts() ? KEPT_HERE : WORDS[state]}</span>
      )}
      {state === "saved" || state === "failed" || isClash ? (
        <button type="button" class="button bare small" onClick={() => void task.run(draft.discard)}>
          Discard
        </button>
      ) : null}
      <Problem error={state === "failed" ? draft.error.value : task.error.value} />
    </div>
  );
}
