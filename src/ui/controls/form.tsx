import type { Signal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useId } from "preact/hooks";
import { issuesOf, withoutIssuesOf } from "../api/error.ts";
import { Advice } from "./advice.tsx";
import { Problem } from "./problem.tsx";
import { type Task, useOwnErrors } from "./task.ts";

interface FormProps {
  task: Task;
  onSubmit: () => Promise<void>;
  children: ComponentChildren;
  class?: string;
}

/** The task of the form around a field. */
export const FormTask = createContext<Task | undefined>(undefined);

/** A form whose submit is a task. Errors that none of its fields shows are at its end. */
export function Form({ task, onSubmit, children, class: name = "form" }: FormProps) {
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    if (await task.run(onSubmit)) return;
    // The button was disabled until the answer came, so the focus is on nothing.
    requestAnimationFrame(() => {
      if (document.activeElement !== document.body && document.activeElement?.tagName !== "DIALOG") return;
      form.querySelector<HTMLElement>("[aria-invalid=true], [type=submit]")?.focus();
    });
  };
  return (
    <form class={name} onSubmit={submit} noValidate>
      <FormTask.Provider value={task}>{children}</FormTask.Provider>
      <FormProblem task={task} />
    </form>
  );
}

/** The error of a form, unless fields show all of it. */
function FormProblem({
  task: {
    error: { value: error },
    fields,
  },
}: {
  task: Task;
}) {
  if (error === null) return null;
  const shown = fields.value.flatMap((field) => issuesOf(error, field));
  const all = error.issues.length > 0 && error.issues.every((issue) => shown.includes(issue));
  return all ? null : <Problem error={error} />;
}

interface FieldProps {
  label: string;
  /** Hides the label from the eye, because something next to it says the same. */
  labelHidden?: boolean;
  /** The field's name in the API, to which its errors belong. */
  name: string;
  hint?: ComponentChildren;
  /** Draws the control with these attributes. */
  children: (attributes: {
    id: string;
    "aria-invalid": boolean;
    "aria-describedby": string | undefined;
  }) => ComponentChildren;
}

/** A labelled control with its hint and the API's errors. */
export function Field({ label, labelHidden = false, name, hint, children }: FieldProps) {
  const task = useContext(FormTask);
  const id = useId();
  useOwnErrors(task, name);
  const issues = issuesOf(task?.error.value ?? null, name);
  const invalid = issues.length > 0;
  const described = [hint === undefined ? null : `${id}-hint`, invalid ? `${id}-error` : null]
    .filter((one) => one !== null)
    .join(" ");
  return (
    <div
      class={invalid ? "field invalid" : "field"}
      onInput={() => {
        // The error is about what was there before.
        if (invalid && task !== undefined) task.error.value = withoutIssuesOf(task.error.peek(), name);
      }}
    >
      <label for={id} class={labelHidden ? "hidden" : undefined}>
        {label}
      </label>
      {children({
        id,
        "aria-invalid": invalid,
        "aria-describedby": described === "" ? undefined : described,
      })}
      {hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {invalid ? (
        <p class="field-error" id={`${id}-error`}>
          <Advice text={issues.map(({ message }) => message).join(" ")} />
        </p>
      ) : null}
    </div>
  );
}

/** A value that a field shows and changes, such as a signal. */
export type FieldValue = Pick<Signal<string>, "value">;

/** Returns the value of a field that has no signal. The field reads and writes it by these functions. */
export function fieldValue<Value = string>(
  read: () => Value,
  write: (next: Value) => void,
): { value: Value } {
  return {
    get value() {
      return read();
    },
    set value(next) {
      write(next);
    },
  };
}

interface TextFieldProps {
  label: string;
  name: string;
  value: FieldValue;
  hint?: ComponentChildren;
  type?: "text" | "password" | "email" | "url" | "number" | "datetime-local" | "date";
  placeholder?: string;
  autoComplete?: "off" | "current-password" | "email";
  autoFocus?: boolean;
  /** Shows the value in a monospace font. */
  code?: boolean;
  /** Smallest value, for numbers and times. */
  min?: string;
}

/** A field with one line of text. */
export function TextField({
  label,
  name,
  value,
  hint,
  type = "text",
  code = false,
  ...rest
}: TextFieldProps) {
  return (
    <Field label={label} name={name} hint={hint}>
      {(attributes) => (
        <input
          // Preact's types want a literal type of input.
          type={type as "text"}
          autoComplete="off"
          dir="auto"
          {...rest}
          {...attributes}
          class={code ? "mono" : undefined}
          value={value.value}
          onInput={(event) => {
            value.value = event.currentTarget.value;
          }}
        />
      )}
    </Field>
  );
}

interface TextAreaProps {
  label: string;
  labelHidden?: boolean;
  name: string;
  value: FieldValue;
  hint?: ComponentChildren;
  rows?: number;
  /** Shows code in a monospace font. */
  code?: boolean;
  placeholder?: string;
}

/** A field with several lines of text. */
export function TextArea({
  label,
  name,
  value,
  hint,
  rows = 8,
  code = false,
  placeholder,
  labelHidden = false,
}: TextAreaProps) {
  return (
    <Field label={label} labelHidden={labelHidden} name={name} hint={hint}>
      {(attributes) => (
        <textarea
          {...attributes}
          class={code ? "mono" : undefined}
          rows={rows}
          dir={code ? undefined : "auto"}
          spellcheck={!code}
          placeholder={placeholder}
          value={value.value}
          onInput={(event) => {
            value.value = event.currentTarget.value;
          }}
        />
      )}
    </Field>
  );
}

interface Option {
  value: string;
  text: string;
}

/**
 * Returns the options of a choice. The chosen one is offered even if it is beyond those that were read.
 * @param text The words of the chosen one then
 */
export function withChosen(options: readonly Option[], chosen: string, text = chosen): readonly Option[] {
  if (chosen === "" || options.some(({ value }) => value === chosen)) return options;
  return [...options, { value: chosen, text }];
}

interface SelectProps {
  label: string;
  name: string;
  value: FieldValue;
  options: readonly Option[];
  hint?: ComponentChildren;
}

/** A field with a choice of several values. */
export function SelectField({ label, name, value, options, hint }: SelectProps) {
  return (
    <Field label={label} name={name} hint={hint}>
      {(attributes) => (
        <select
          {...attributes}
          value={value.value}
          onChange={(event) => {
            value.value = event.currentTarget.value;
          }}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckProps {
  label: ComponentChildren;
  checked: Pick<Signal<boolean>, "value">;
  onChange?: (checked: boolean) => void;
}

/** A box to check. */
export function CheckBox({ label, checked, onChange }: CheckProps) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        checked={checked.value}
        onChange={(event) => {
          checked.value = event.currentTarget.checked;
          onChange?.(event.currentTarget.checked);
        }}
      />
      <span>{label}</span>
    </label>
  );
}
