import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";
import { Problem } from "./problem.tsx";
import { type Task, useTask } from "./task.ts";

interface DialogProps {
  title: string;
  onClose: () => void;
  /** `wide` for editors. */
  size?: "narrow" | "wide";
  /** Keeps it open after a click outside. */
  firm?: boolean;
  children: ComponentChildren;
}

/** A modal window. It is open while the component is there. Esc closes it, and so does a click outside until something was typed. */
export function Dialog({ title, onClose, size = "narrow", firm = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const typed = useRef(false);
  // Before the page is painted, so that what is typed next goes into it.
  useLayoutEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  const onPointerDown = (event: PointerEvent) => {
    if (event.target === dialog.current && !firm && !typed.current) onClose();
  };
  const onCancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog
      ref={dialog}
      class={`dialog ${size}`}
      aria-labelledby={id}
      onCancel={onCancel}
      onPointerDown={onPointerDown}
      onInput={() => {
        typed.current = true;
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button type="button" class="button bare" aria-label="Close" onClick={onClose}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** A sentence that names everything that is destroyed. */
  children: ComponentChildren;
  /** A verb with its object: `Delete domain`. */
  verb: string;
  /** The other choice. */
  keep?: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  /** The task that it runs in, if the page shows its error too. */
  task?: Task;
}

/** Asks before something is destroyed. */
export function Confirm(props: ConfirmProps) {
  const { title, children, verb, keep = "Keep it", onConfirm, onClose, task: given } = props;
  const own = useTask();
  const task = given ?? own;
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="dialog-body">
        {children}
        <Problem error={task.error.value} />
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          {keep}
        </button>
        <button
          type="button"
          class="button danger"
          disabled={task.busy.value}
          onClick={() => void task.run(onConfirm)}
        >
          {verb}
        </button>
      </footer>
    </Dialog>
  );
}
