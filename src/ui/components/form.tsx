import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { type ApiError, asApiError, issuesOf } from "../api/error.ts";
import { Problem } from "./problem.tsx";

/** A change that a person asked for, such as the submit of a form. */
export interface Task {
  busy: Signal<boolean>;
  error: Signal<ApiError | null>;
  /** Runs it. Returns whether it succeeded. While it runs, a second call does nothing. */
  run(work: () => Promise<void>): Promise<boolean>;
}

/** Returns a task of the component. */
export function useTask(): Task {
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const run = async (work: () => Promise<void>) => {
    if (busy.value) return false;
    busy.value = true;
    error.value = null;
    try {
      await work();
      return true;
    } catch (thrown) {
      error.value = asApiError(thrown);
      return false;
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, run };
}

interface FormProps {
  task: Task;
  onSubmit: () => Promise<void>;
  children: ComponentChildren;
  /** Names of the fields that show their own errors. All other errors are at the end. */
  fields?: readonly string[];
  class?: string;
}

/** A form whose submit is a task. */
export function Form({ task, onSubmit, children, fields = [], class: name = "form" }: FormProps) {
  const submit = (event: Event) => {
    event.preventDefault();
    void task.run(onSubmit);
  };
  return (
    <form class={name} onSubmit={submit} noValidate>
      {children}
      <FormProblem error={task.error.value} fields={fields} />
    </form>
  );
}

/** The error of a form, unless a field shows all of it. */
export function FormProblem({ error, fields }: { error: ApiError | null; fields: readonly string[] }) {
  if (error === null) return null;
  const shown = fields.flatMap((field) => issuesOf(error, field));
  const all = error.issues.length > 0 && error.issues.every((issue) => shown.includes(issue));
  return all ? null : <Problem error={error} />;
}

interface FieldProps {
  label: string;
  /** Hides the label from the eye, because something next to it says the same. */
  labelHidden?: boolean;
  /** The field's name in the API, to which its errors belong. */
  name: string;
  task?: Task | undefined;
  hint?: ComponentChildren;
  /** Draws the control with these attributes. */
  children: (attributes: {
    id: string;
    "aria-invalid": boolean;
    "aria-describedby": string | undefined;
  }) => ComponentChildren;
}

/** A labelled control with its hint and the API's errors. */
export function Field({ label, labelHidden = false, name, task, hint, children }: FieldProps) {
  const id = useId();
  const issues = issuesOf(task?.error.value ?? null, name);
  const invalid = issues.length > 0;
  const described = [hint === undefined ? null : `${id}-hint`, invalid ? `${id}-error` : null]
    .filter((one) => one !== null)
    .join(" ");
  return (
    <div class={invalid ? "field invalid" : "field"}>
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
          {issues.map(({ message }) => message).join(" ")}
        </p>
      ) : null}
    </div>
  );
}

interface TextFieldProps {
  label: string;
  name: string;
  value: Signal<string>;
  task?: Task | undefined;
  hint?: ComponentChildren;
  type?: "text" | "password" | "email" | "url" | "number" | "datetime-local" | "date";
  placeholder?: string;
  autoComplete?: "off" | "current-password";
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
  task,
  hint,
  type = "text",
  code = false,
  ...rest
}: TextFieldProps) {
  return (
    <Field label={label} name={name} task={task} hint={hint}>
      {(attributes) => (
        <input
          // Preact's types want a literal type of input.
          type={type as "text"}
          autoComplete="off"
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
  value: Signal<string>;
  task?: Task | undefined;
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
  task,
  hint,
  rows = 8,
  code = false,
  placeholder,
  labelHidden = false,
}: TextAreaProps) {
  return (
    <Field label={label} labelHidden={labelHidden} name={name} task={task} hint={hint}>
      {(attributes) => (
        <textarea
          {...attributes}
          class={code ? "mono" : undefined}
          rows={rows}
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

interface SelectProps {
  label: string;
  name: string;
  value: Signal<string>;
  options: readonly { value: string; text: string }[];
  task?: Task | undefined;
  hint?: ComponentChildren;
}

/** A field with a choice of several texts. */
export function SelectField({ label, name, value, options, task, hint }: SelectProps) {
  return (
    <Field label={label} name={name} task={task} hint={hint}>
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
  checked: Signal<boolean>;
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

interface FormFootProps {
  /** A verb with its object: `Create contact`. */
  verb: string;
  task: Task;
  onClose: () => void;
}

/** The buttons of a form in a window. */
export function FormFoot({ verb, task, onClose }: FormFootProps) {
  return (
    <footer class="dialog-foot">
      <button type="button" class="button" onClick={onClose}>
        Close
      </button>
      <button type="submit" class="button primary" disabled={task.busy.value}>
        {verb}
      </button>
    </footer>
  );
}
