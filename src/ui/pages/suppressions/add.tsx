import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Suppression } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, FormFoot, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { localField } from "../../words/time.ts";

interface AddProps {
  onClose: () => void;
  onAdded: (entry: Suppression) => void;
}

/** Suppresses an address. */
export function AddSuppression({ onClose, onAdded }: AddProps) {
  const task = useTask();
  const email = useSignal("");
  const note = useSignal("");
  const until = useSignal("");
  const add = async () => {
    const body = {
      email: email.value.trim(),
      note: note.value.trim() === "" ? null : note.value.trim(),
      expiresAt: until.value === "" ? null : new Date(until.value).toISOString(),
    };
    onAdded(await post<Suppression>("/v1/suppressions", body));
  };
  return (
    <Dialog title="Suppress an address" onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={add}>
        <TextField
          label="Address"
          name="email"
          value={email}
          task={task}
          autoFocus
          placeholder="ben@example.com"
          hint="If it is on the list already, its entry stays as it is."
        />
        <TextField
          label="Note"
          name="note"
          value={note}
          task={task}
          placeholder="asked by phone"
          hint="For you. Optional."
        />
        <TextField
          label="Until"
          name="expiresAt"
          type="datetime-local"
          min={localField(now())}
          value={until}
          task={task}
          hint="In your own time zone. Empty: until it is lifted."
        />
        <FormFoot verb="Suppress address" task={task} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
