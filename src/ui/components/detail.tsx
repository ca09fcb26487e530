import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Id } from "../controls/copy.tsx";
import { Icon } from "../controls/icon.tsx";

/** Below this width the list is hidden while a detail is open. The style sheet has the same width. */
const ALONE = "(max-width: 1099px)";

interface DetailProps {
  /** Name of the kind that it shows, such as `Message`. */
  name: string;
  /** Its id; null if that is not known yet. */
  id: string | null;
  busy: boolean;
  /** Buttons at the top. */
  actions?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
}

/** The detail of a list's row: next to the list, or in its place on a narrow window. */
export function Detail({ name, id, busy, actions, onClose, children }: DetailProps) {
  const box = useRef<HTMLElement>(null);
  // If the list is hidden, so is the link that had the focus.
  useLayoutEffect(() => {
    if (window.matchMedia(ALONE).matches) box.current?.focus();
  }, []);
  const close = `Close the ${name.toLowerCase()}`;
  return (
    <article class="detail" aria-label={name} aria-busy={busy} ref={box} tabIndex={-1}>
      <header class="detail-top">
        <button type="button" class="button bare" onClick={onClose} aria-label={close} title="Close (Esc)">
          <Icon name="left" />
        </button>
        {id === null ? null : <Id id={id} what={`${name.toLowerCase()} id`} />}
        <span class="grow" />
        {actions}
      </header>
      {children}
    </article>
  );
}
