import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { TextField } from "./form.tsx";
import { FormDialog } from "./form-dialog.tsx";

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
  return (
    <FormDialog
      title={title}
      verb={verb}
      keep="Keep it"
      danger
      incomplete={typed.value.trim() !== name.trim()}
      onSubmit={onConfirm}
      onClose={onClose}
    >
      {children}
      <TextField label={`Type ${name} to confirm`} name="confirmation" value={typed} autoFocus />
    </FormDialog>
  );
}
