import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post } from "../../../api/client.ts";
import { Form, TextArea } from "../../../controls/form.tsx";
import { useTask } from "../../../controls/task.ts";
import { unsent } from "../../../state/draft.ts";

interface NoteProps {
  threadId: string;
  onAdded: () => void;
}

/** Writes a note that the team sees in the conversation. */
export function NoteForm({ threadId, onAdded }: NoteProps) {
  const name = `note ${threadId}`;
  const text = useSignal(unsent.get(name) ?? "");
  const task = useTask();
  useEffect(() => {
    unsent.set(name, text.value);
  }, [name, text.value]);
  const add = async () => {
    await post(`/v1/threads/${encodeURIComponent(threadId)}/notes`, { text: text.value.trimEnd() });
    text.value = "";
    onAdded();
  };
  return (
    <Form class="form note-form" task={task} onSubmit={add}>
      <TextArea
        label="Note"
        labelHidden
        name="text"
        value={text}
        rows={4}
        placeholder="Write a note. It never leaves by mail."
      />
      <div class="reply-tools">
        <button type="submit" class="button primary" disabled={task.busy.value || text.value.trim() === ""}>
          Add note
        </button>
      </div>
    </Form>
  );
}
