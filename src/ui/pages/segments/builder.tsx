import { type Signal, useSignal } from "@preact/signals";
import { useContext, useEffect } from "preact/hooks";
import type { ApiError } from "../../api/error.ts";
import { Field, fieldValue, FormTask, SelectField } from "../../controls/form.tsx";
import { Icon } from "../../controls/icon.tsx";
import { capitalized } from "../../words/case.ts";
import {
  DAYS,
  EMPTY_FORM,
  type Filter,
  type FilterForm,
  filterOf,
  filterSentence,
  firstCondition,
  type FormCondition,
  formOf,
  type FormRow,
  isIncomplete,
  JOINS,
  OPERATORS,
  operatorText,
  type Subject,
  takesValue,
  valuesOf,
  type Audience,
  subjectsOf,
} from "../../words/filter.ts";
import { Sample, useCount } from "./count.tsx";

/** Contacts are counted after a pause in typing of this length. */
const PAUSE_MS = 300;

interface BuilderProps {
  form: Signal<FilterForm>;
  audience: Audience;
}

/** Returns whether a condition of the form lacks its value. */
export function lacksValue(form: FilterForm): boolean {
  return form.rows.some(isIncomplete);
}

/** Returns the form of a filter. Without a filter it has one condition to fill in. */
export function useFilterForm(filter: Filter | null, subjects: readonly Subject[]): Signal<FilterForm> {
  const rows = subjects.slice(0, 1).map(firstCondition);
  return useSignal(filter === null ? { ...EMPTY_FORM, rows } : formOf(filter, subjects));
}

const JOIN_WORDS = { all: "all of these", any: "any of these", not: "none of these" } as const;

/** The conditions of a filter, with the number of contacts that pass them now. Part of a form. */
export function FilterBuilder({ form, audience }: BuilderProps) {
  const subjects = subjectsOf(audience);
  const { join, rows } = form.value;
  const setRows = (next: readonly FormRow[]) => {
    form.value = { ...form.peek(), rows: next };
  };
  const first = subjects[0];
  return (
    <>
      {rows.length < 2 && join !== "not" ? null : (
        <SelectField
          label="Contacts with"
          name="join"
          value={fieldValue(
            () => form.value.join,
            (next) => {
              const chosen = JOINS.find((one) => one === next);
              if (chosen !== undefined) form.value = { ...form.peek(), join: chosen };
            },
          )}
          options={JOINS.map((value) => ({ value, text: JOIN_WORDS[value] }))}
        />
      )}
      <ul class="form" aria-label="Conditions">
        {rows.map((row, at) => (
          <li key={at}>
            <Row
              row={row}
              number={at + 1}
              name={`filter.${join}[${at}]`}
              subjects={subjects}
              onChange={(next) => setRows(rows.with(at, next))}
              onRemove={() => setRows(rows.toSpliced(at, 1))}
            />
          </li>
        ))}
      </ul>
      <div>
        <button
          type="button"
          class="button small"
          onClick={() => first !== undefined && setRows([...rows, firstCondition(first)])}
        >
          <Icon name="plus" />
          Add condition
        </button>
      </div>
      <Passing form={form.value} subjects={subjects} />
    </>
  );
}

interface RowProps {
  row: FormRow;
  number: number;
  /** The path of the condition in the filter, to which the API's errors belong. */
  name: string;
  subjects: readonly Subject[];
  onChange: (row: FormRow) => void;
  onRemove: () => void;
}

function Row({ row, number, name, subjects, onChange, onRemove }: RowProps) {
  const remove = (
    <button type="button" class="button bare" aria-label={`Remove condition ${number}`} onClick={onRemove}>
      <Icon name="cross" />
    </button>
  );
  if ("kept" in row)
    return (
      <Field
        label={`Condition ${number}`}
        labelHidden
        name={name}
        hint="Made with the API. It is kept as it is."
      >
        {({ id }) => (
          <div class="condition kept">
            <output id={id}>{filterSentence(row.kept, subjects)}</output>
            {remove}
          </div>
        )}
      </Field>
    );
  return (
    <Field label={`Condition ${number}`} labelHidden name={name}>
      {(attributes) => (
        <div class="condition">
          <ConditionFields row={row} {...{ number, subjects, onChange, attributes }} />
          {remove}
        </div>
      )}
    </Field>
  );
}

interface ConditionProps extends Pick<RowProps, "number" | "subjects"> {
  row: FormCondition;
  onChange: (row: FormCondition) => void;
  /** Those of the labelled control, which is the first. */
  attributes: { id: string };
}

function ConditionFields({ row, number, subjects, onChange, attributes }: ConditionProps) {
  const subject = subjects.find(({ id }) => id === row.subject);
  if (subject === undefined) return null;
  const operators = OPERATORS[subject.type];
  const chooseSubject = (id: string) => {
    const next = subjects.find((one) => one.id === id);
    if (next !== undefined) onChange(firstCondition(next));
  };
  return (
    <>
      <select
        {...attributes}
        value={row.subject}
        onChange={(event) => chooseSubject(event.currentTarget.value)}
      >
        {subjects.map(({ id, name }) => (
          <option key={id} value={id}>
            {id.startsWith("field:") ? capitalized(name) : name}
          </option>
        ))}
      </select>
      <select
        aria-label={`Comparison of condition ${number}`}
        value={row.op}
        onChange={(event) => onChange(withOperator(row, event.currentTarget.value))}
      >
        {operators.map((op) => (
          <option key={op} value={op}>
            {operatorText(op, subject.type)}
          </option>
        ))}
      </select>
      {takesValue(row.op) ? (
        <ValueField
          row={row}
          type={subject.type}
          label={`Value of condition ${number}`}
          onChange={(value) => onChange({ ...row, value })}
        />
      ) : (
        <span />
      )}
    </>
  );
}

/** Returns the condition with another operator. A number of days is no date. */
function withOperator(row: FormCondition, op: string): FormCondition {
  return { ...row, op, value: DAYS.has(op) === DAYS.has(row.op) ? row.value : "" };
}

interface ValueProps {
  row: FormCondition;
  type: Subject["type"];
  label: string;
  onChange: (value: string) => void;
}

function ValueField({ row: { op, value }, type, label, onChange }: ValueProps) {
  const choices = valuesOf(type);
  if (choices !== null)
    return (
      <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
    );
  return (
    <input
      // Preact's types want a literal type of input.
      type={inputType(op, type, value) as "text"}
      aria-label={label}
      autoComplete="off"
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** Returns the type of the control. A time of the API is more than a day, so it stays a string. */
function inputType(op: string, type: Subject["type"], value: string): string {
  if (DAYS.has(op) || type === "number") return "number";
  const isDay = value === "" || /^\d{4}-\d\d-\d\d$/.test(value);
  const isTime = type === "date" || type === "time" || type === "moment";
  return isTime && isDay ? "date" : "text";
}

/** How many contacts pass the filter, and some of them. Faults of the filter are shown at its conditions. */
function Passing({ form, subjects }: { form: FilterForm; subjects: readonly Subject[] }) {
  const task = useContext(FormTask);
  const incomplete = lacksValue(form);
  const { found, error } = useCount(incomplete ? null : filterOf(form, subjects), { pauseMs: PAUSE_MS });
  const fault = error.value;
  useEffect(() => {
    if (task !== undefined && fault !== null) task.error.value = fault;
    return () => clear(task?.error, fault);
  }, [task, fault]);
  return (
    <p class="counted" role="status">
      {form.rows.length === 0 ? (
        "All contacts."
      ) : incomplete ? (
        "A condition has no value yet."
      ) : found.value === null ? (
        fault === null && "Counting…"
      ) : (
        <Sample found={found.value} />
      )}
    </p>
  );
}

/** Removes an error from a task, unless another one came since. */
function clear(shown: Signal<ApiError | null> | undefined, fault: ApiError | null): void {
  if (shown !== undefined && fault !== null && shown.peek() === fault) shown.value = null;
}
