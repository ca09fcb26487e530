import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { Form } from "./form.tsx";
import { type Task, useTask } from "./task.ts";

interface FormDialogProps {
  title: string;
  /** Text of the submit button, a verb with its object: `Create contact`. */
  verb: string;
  /** Text of the button that closes the window without a change. */
  keep?: string;
  /** `wide` for editors. */
  size?: "narrow" | "wide";
  /** The submit destroys something. */
  danger?: boolean;
  /** The form cannot be submitted yet. */
  incomplete?: boolean;
  /** The submit's task, if the fields need it too. */
  task?: Task;
  onSubmit: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

/** The page's side of a window that makes a record. */
export interface MakerProps<Made> {
  onClose: () => void;
  onCreated: (made: Made) => void;
}

/** A window with a form and its two buttons. */
export function FormDialog(props: FormDialogProps) {
  const {
    title,
    verb,
    keep = "Close",
    size = "narrow",
    danger = false,
    incomplete = false,
    onSubmit,
    onClose,
    children,
  } = props;
  const own = useTask();
  const task = props.task ?? own;
  return (
    <Dialog title={title} size={size} onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={onSubmit}>
        {children}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            {keep}
          </button>
          <button
            type="submit"
            class={danger ? "button danger" : "button primary"}
            disabled={task.busy.value || incomplete}
          >
            {verb}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
