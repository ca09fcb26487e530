import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { Form, TextField } from "./form.tsx";
import { useTask } from "./task.ts";

interface ConfirmNameProps {
  title: string;
  /** The name that must be typed. */
  name: string;
  /** A verb with its object: `Delete domain`. */
  verb: string;
  /** A sentence that names everything that is destroyed. */
  children: ComponentChildren;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

/** Asks for a name before the thing of that name is destroyed. */
export function ConfirmName({ title, name, verb, children, onConfirm, onClose }: ConfirmNameProps) {
  const typed = useSignal("");
  const task = useTask();
  return (
    <Dialog title={title} onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={onConfirm}>
        {children}
        <TextField label={`Type ${name} to confirm`} name="confirmation" value={typed} autoFocus />
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Keep it
          </button>
          <button
            type="submit"
            class="button danger"
            disabled={task.busy.value || typed.value.trim() !== name.trim()}
          >
            {verb}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
