import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface MenuProps {
  label: string;
  /** `form` for fields, which keep it open. `actions` for buttons, of which each closes it. */
  kind: "form" | "actions";
  children: ComponentChildren;
}

/** A button that opens a box below it. Esc closes it, and so does a click outside. */
export function Menu({ label, kind, children }: MenuProps) {
  const open = useSignal(false);
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (!open.value) return;
    const close = ({ target }: Event) => {
      if (target instanceof Node && menu.current?.contains(target) === true) return;
      open.value = false;
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open.value]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open.value) return;
    // It would also close the detail.
    event.stopPropagation();
    open.value = false;
    menu.current?.querySelector("summary")?.focus();
  };
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={onKeyDown}
      open={open.value}
      onToggle={(event) => (open.value = event.currentTarget.open)}
    >
      <summary class="button small">
        {label}
        <Icon name="down" />
      </summary>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the buttons in it handle the click */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a key that presses a button in it is a click too */}
      <div
        class={`menu-box ${kind}`}
        onClick={() => {
          if (kind === "actions") open.value = false;
        }}
      >
        {children}
      </div>
    </details>
  );
}
