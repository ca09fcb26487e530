import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

/** Something to choose. */
export interface Choice {
  id: string;
  text: string;
  /** More words at its right. */
  hint?: string;
  /** True if it is the choice now. */
  chosen?: boolean;
}

interface ChoiceDialogProps {
  title: string;
  /** The words in the empty field. */
  placeholder: string;
  choices: readonly Choice[];
  /** Shown if nothing fits what was typed. */
  none: string;
  /** Returns a choice that what was typed makes, if no choice has that text. */
  made?: (typed: string) => Choice;
  onChoose: (id: string) => void;
  onClose: () => void;
}

/** A window to choose one of many things: what is typed narrows them, arrow keys move, Enter chooses. */
export function ChoiceDialog({
  title,
  placeholder,
  choices,
  none,
  made,
  onChoose,
  onClose,
}: ChoiceDialogProps) {
  const typed = useSignal("");
  const at = useSignal(0);
  /** True if Enter was pressed before there was a choice, for example while the choices load. */
  const early = useSignal(false);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = fitting(choices, typed.value, made);
  const active = Math.min(at.value, shown.length - 1);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const chosen = shown[active];
  useEffect(() => {
    if (!early.value || chosen === undefined) return;
    early.value = false;
    onChoose(chosen.id);
  }, [chosen?.id]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter" && chosen !== undefined) onChoose(chosen.id);
    else if (event.key === "Enter") early.value = true;
    else if (step !== 0) at.value = Math.max(0, Math.min(shown.length - 1, active + step));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="dialog-body choice">
        <input
          type="text"
          role="combobox"
          aria-label={title}
          aria-expanded={shown.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={shown.length === 0 ? undefined : `${id}-${active}`}
          autoComplete="off"
          autoFocus
          dir="auto"
          placeholder={placeholder}
          onKeyDown={onKeyDown}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            at.value = 0;
            early.value = false;
          }}
        />
        {shown.length === 0 ? <p class="quiet">{none}</p> : null}
        <div class="choices" role="listbox" id={`${id}-list`} aria-label={title} ref={list}>
          {shown.map((choice, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and handles the keys
            // biome-ignore lint/a11y/useFocusableInteractive: aria-activedescendant points at it
            <div
              key={choice.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === active}
              onClick={() => onChoose(choice.id)}
            >
              <span class="choice-mark">{choice.chosen === true ? <Icon name="check" /> : null}</span>
              <span class="cut" dir="auto">
                {choice.text}
                {choice.chosen === true ? <span class="hidden"> (chosen)</span> : null}
              </span>
              <span class="quiet">{choice.hint}</span>
            </div>
          ))}
        </div>
      </div>
    </Dialog>
  );
}

/** Returns the choices that contain what was typed, and at the end the one that it makes. */
function fitting(choices: readonly Choice[], typed: string, made: ChoiceDialogProps["made"]): Choice[] {
  const text = typed.trim();
  const wanted = text.toLowerCase();
  const found = choices.filter((choice) => choice.text.toLowerCase().includes(wanted));
  const isNew = text !== "" && !choices.some((choice) => choice.text === text);
  return made !== undefined && isNew ? [...found, made(text)] : found;
}
