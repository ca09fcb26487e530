import type { Signal } from "@preact/signals";
import { useContext, useId } from "preact/hooks";
import { issuesOf } from "../api/error.ts";
import { Advice } from "./advice.tsx";
import { FormTask } from "./form.tsx";
import { useOwnErrors } from "./task.ts";

interface ChecksProps {
  label: string;
  /** The field's name in the API, to which its errors belong. */
  name: string;
  /** The values to choose from. */
  options: readonly { value: string; text: string; title?: string }[];
  chosen: Signal<ReadonlySet<string>>;
}

/** A group of boxes to check, in columns. */
export function Checks({ label, name, options, chosen }: ChecksProps) {
  const task = useContext(FormTask);
  const id = useId();
  useOwnErrors(task, name);
  const issues = issuesOf(task?.error.value ?? null, name);
  const turn = (value: string, on: boolean) => {
    const next = new Set(chosen.value);
    if (on) next.add(value);
    else next.delete(value);
    chosen.value = next;
  };
  return (
    <fieldset class="check-group" aria-describedby={issues.length > 0 ? `${id}-error` : undefined}>
      <legend>{label}</legend>
      <div class="check-columns">
        {options.map(({ value, text, title }) => (
          <label key={value} class="checkbox" title={title}>
            <input
              type="checkbox"
              checked={chosen.value.has(value)}
              onChange={(event) => turn(value, event.currentTarget.checked)}
            />
            <span>{text}</span>
          </label>
        ))}
      </div>
      {issues.length === 0 ? null : (
        <p class="field-error" id={`${id}-error`}>
          <Advice text={issues.map(({ message }) => message).join(" ")} />
        </p>
      )}
    </fieldset>
  );
}
