import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Pages } from "../api/pages.ts";
import { asApiError } from "../api/error.ts";
import { Confirm } from "../controls/dialog.tsx";
import { counted } from "../words/amounts.ts";
import { saveFile } from "../browser/save.ts";
import { useKey } from "../state/keyboard.ts";
import { MAX_PICKED, type Picked, withRows } from "../state/picked.ts";
import { tableText } from "../words/table.ts";

/** Requests of one action that are sent at once. */
const AT_ONCE = 4;

/** A button of the bar. */
interface BulkButton {
  /** A verb: `Archive`. */
  verb: string;
  /** The key that does the same while rows are selected. */
  key?: string;
}

/** An action that asks first what exactly to do. */
export interface BulkQuestion<Row> extends BulkButton {
  /** Draws the window that asks. */
  ask: (props: {
    rows: readonly Row[];
    onChosen: (action: BulkAction<Row>) => void;
    onClose: () => void;
  }) => ComponentChildren;
}

/** An action on selected rows. */
export interface BulkAction<Row> extends BulkButton {
  /** What was done, after a number: `archived`. */
  done: string;
  /** What happens, for the question before it. Absent: nobody is asked. */
  warning?: string;
  /** The other choice of that question. */
  keep?: string;
  /** Returns why a row is left out; null if it is taken. */
  refuses?: (row: Row) => string | null;
  /** Does it. `token` stays the same until it has succeeded, so that a second try has no second effect. */
  run: (row: Row, token: string) => Promise<void>;
  /** Called at the end with the rows that it has changed, as they were before. It tells the person what was done. */
  finished?: (rows: readonly Row[]) => void;
  /** True if rows leave the list by it. */
  leaves?: boolean;
}

/** The selected rows of a list. */
export interface Picks<Row> {
  picked: ReadonlySignal<ReadonlyMap<string, Picked<Row>>>;
  /** Selects a row or takes it out again. `span`: with all from the last one to it. */
  toggle(row: Row, span: boolean): void;
  drop(keys: readonly string[]): void;
  all(): void;
}

/** Returns the selected rows of a list. Another filter begins with none. */
export function usePicks<Row>(pages: Pages<Row>, keyOf: (row: Row) => string): Picks<Row> {
  const picked = useSignal<ReadonlyMap<string, Picked<Row>>>(new Map());
  const last = useRef<string | null>(null);
  useEffect(() => {
    picked.value = new Map();
  }, [pages]);
  const add = (rows: readonly Row[]) => {
    picked.value = withRows(picked.value, rows, keyOf);
  };
  const drop = (keys: readonly string[]) => {
    picked.value = new Map([...picked.value].filter(([key]) => !keys.includes(key)));
  };
  return {
    picked,
    drop,
    all: () => add(pages.rows.value),
    toggle: (row, span) => {
      const rows = pages.rows.value;
      const [from, to] = [last.current, keyOf(row)].map((key) => rows.findIndex((one) => keyOf(one) === key));
      last.current = keyOf(row);
      if (span && from !== undefined && to !== undefined && from >= 0)
        add(rows.slice(Math.min(from, to), Math.max(from, to) + 1));
      else if (picked.value.has(keyOf(row))) drop([keyOf(row)]);
      else add([row]);
    },
  };
}

interface Outcome {
  text: string;
  failures: readonly string[];
}

/** Failures that are listed one by one. */
const SHOWN_FAILURES = 5;

/** The actions of a list on its selected rows. */
export interface Bulk<Row> {
  /** The words for a row. */
  nameOf: (row: Row) => string;
  actions: readonly (BulkAction<Row> | BulkQuestion<Row>)[];
  /** The file of an export: its name, and the columns of its table. */
  file: string;
  columns: Readonly<Record<string, (row: Row) => string>>;
}

interface BarProps<Row> {
  picks: Picks<Row>;
  pages: Pages<Row>;
  bulk: Bulk<Row>;
}

/** How many rows are selected, and what can be done with them. It tells what failed, and keeps those rows selected. */
export function PickBar<Row>({ picks, pages, bulk }: BarProps<Row>) {
  const busy = useSignal(false);
  const outcome = useSignal<Outcome | null>(null);
  const asked = useSignal<BulkAction<Row> | BulkQuestion<Row> | null>(null);
  const picked = picks.picked.value;
  const start = async (action: BulkAction<Row>) => {
    asked.value = null;
    busy.value = true;
    const done: Row[] = [];
    outcome.value = await runOn(action, [...picked], bulk.nameOf, (key, row) => {
      done.push(row);
      picks.drop([key]);
      if (action.leaves === true) pages.drop(row);
    });
    busy.value = false;
    if (action.finished !== undefined && done.length > 0) action.finished(done);
    if (action.finished !== undefined && outcome.value.failures.length === 0) outcome.value = null;
    pages.refresh();
  };
  const choose = (action: BulkAction<Row> | BulkQuestion<Row>) => {
    if (busy.value) return;
    if ("run" in action && action.warning === undefined) void start(action);
    else asked.value = action;
  };
  const close = () => {
    asked.value = null;
  };
  if (picked.size === 0 && outcome.value === null) return null;
  return (
    <section class="picks" aria-label="Selected rows">
      {picked.size === 0 ? null : (
        <>
          <span class="strong">{picked.size} selected</span>
          {bulk.actions.map((action) => (
            <button
              key={action.verb}
              type="button"
              class="button small"
              disabled={busy.value}
              title={action.key}
              onClick={() => choose(action)}
            >
              {action.verb}
              {action.key === undefined ? null : <ActionKey name={action.key} run={() => choose(action)} />}
            </button>
          ))}
          <button
            type="button"
            class="button small"
            onClick={() =>
              saveRows(
                bulk,
                [...picked.values()].map(({ row }) => row),
              )
            }
          >
            Export selected
          </button>
          <button type="button" class="button bare small" onClick={picks.all}>
            Select all shown
          </button>
        </>
      )}
      <button
        type="button"
        class="button bare small"
        onClick={() => {
          picks.drop([...picked.keys()]);
          outcome.value = null;
        }}
      >
        Clear
      </button>
      {picked.size < MAX_PICKED ? null : <span class="quiet">Maximum number of rows</span>}
      <div role="status">
        {outcome.value?.text}
        {outcome.value?.failures.slice(0, SHOWN_FAILURES).map((failure) => (
          <p key={failure}>{failure}</p>
        ))}
      </div>
      {asked.value === null ? null : "ask" in asked.value ? (
        asked.value.ask({
          rows: [...picked.values()].map(({ row }) => row),
          onChosen: (action) => void start(action),
          onClose: close,
        })
      ) : (
        <Ask action={asked.value} count={picked.size} onStart={start} onClose={close} />
      )}
    </section>
  );
}

/** Makes the key of an action act on the selected rows, as long as there are some. */
function ActionKey({ name, run }: { name: string; run: () => void }) {
  useKey(name, run);
  return null;
}

function saveRows<Row>({ file, columns }: Bulk<Row>, rows: readonly Row[]): void {
  const cells = rows.map((row) => Object.values(columns).map((cellOf) => cellOf(row)));
  saveFile(`${file}.csv`, "text/csv", tableText(Object.keys(columns), cells));
}

interface AskProps<Row> {
  action: BulkAction<Row>;
  count: number;
  onStart: (action: BulkAction<Row>) => Promise<void>;
  onClose: () => void;
}

function Ask<Row>({ action, count, onStart, onClose }: AskProps<Row>) {
  return (
    <Confirm
      title={`${action.verb} ${counted(count, "row")}?`}
      verb={action.verb}
      keep={action.keep ?? "Keep them"}
      onConfirm={() => onStart(action)}
      onClose={onClose}
    >
      <p>{action.warning}</p>
    </Confirm>
  );
}

/** Does it with each row, a few at once. Returns what to say about it. */
async function runOn<Row>(
  { done, refuses, run }: BulkAction<Row>,
  entries: (readonly [string, Picked<Row>])[],
  nameOf: (row: Row) => string,
  onDone: (key: string, row: Row) => void,
): Promise<Outcome> {
  const failures: string[] = [];
  const waiting = entries.values();
  const work = async () => {
    for (const [key, { row, token }] of waiting) {
      const refusal = refuses?.(row) ?? null;
      try {
        if (refusal === null) await run(row, token);
      } catch (thrown) {
        failures.push(`${nameOf(row)}: ${asApiError(thrown).message}`);
        continue;
      }
      if (refusal === null) onDone(key, row);
      else failures.push(`${nameOf(row)}: ${refusal}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const rest = failures.length === 0 ? "." : `, ${failures.length} not:`;
  return { text: `${entries.length - failures.length} ${done}${rest}`, failures };
}
