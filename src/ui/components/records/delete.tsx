import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Confirm } from "../../controls/dialog.tsx";

interface Props {
  name: string;
  /** In lower case: `topic`. */
  noun: string;
  /** The words of the button for screen readers, if there are several buttons. */
  label?: string;
  class?: string;
  onDelete: () => Promise<void>;
  /** Sentences that name everything that is deleted. */
  children: ComponentChildren;
}

/** The button that deletes a record, and its question. */
export function DeleteButton({ name, noun, label, class: kind = "button small", onDelete, children }: Props) {
  const asks = useSignal(false);
  return (
    <>
      <button type="button" class={kind} aria-label={label} onClick={() => (asks.value = true)}>
        Delete
      </button>
      {asks.value ? (
        <Confirm
          title={`Delete ${name}?`}
          verb={`Delete ${noun}`}
          onConfirm={onDelete}
          onClose={() => (asks.value = false)}
        >
          <p>{children}</p>
        </Confirm>
      ) : null}
    </>
  );
}
