import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { after } from "../browser/clock.ts";
import { Icon } from "./icon.tsx";

/** How long the button confirms a copy, ms. */
const CONFIRM_MS = 1_500;

interface CopyProps {
  text: string;
  /** Its name in the label: `Copy message id`. */
  what: string;
  /** Words on the button. Without them it shows an icon only. */
  children?: ComponentChildren;
}

/** A button that copies text and confirms it in place. */
export function CopyButton({ text, what, children }: CopyProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => (copied ? after(CONFIRM_MS, () => setCopied(false)) : undefined), [copied]);
  const copy = async (event: Event) => {
    event.preventDefault();
    event.stopPropagation();
    await copyText(text);
    setCopied(true);
  };
  return (
    <button
      type="button"
      class={children === undefined ? "copy" : "button small"}
      onClick={copy}
      title={`Copy ${what}`}
      aria-label={copied ? "Copied" : `Copy ${what}`}
    >
      <Icon name={copied ? "check" : "copy"} />
      {children === undefined ? null : copied ? "Copied" : children}
    </button>
  );
}

/** Copies text. Browsers offer the clipboard on https and localhost only; elsewhere a selection is copied. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Characters of an id that are shown: the prefix and the end, which differs most. */
const ID_END = 6;

/** An id in short, with the full one on hover and a button that copies it. */
export function Id({ id, what = "id" }: { id: string; what?: string }) {
  const cut = id.indexOf("_") + 1;
  const short = id.length - cut > ID_END + 2 ? `${id.slice(0, cut)}…${id.slice(-ID_END)}` : id;
  return (
    <span class="id">
      <code title={id}>{short}</code>
      <CopyButton text={id} what={what} />
    </span>
  );
}

/** A command or other text in full, with a button that copies it. */
export function Code({ text, what, label }: { text: string; what: string; label?: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it */}
      <section tabIndex={0} aria-label={label ?? what}>
        <pre>{text}</pre>
      </section>
      <CopyButton text={text} what={what} />
    </div>
  );
}
