import type { ComponentChildren } from "preact";
import { remove } from "../../api/client.ts";
import type { Pages } from "../../api/pages.ts";
import { Icon } from "../../controls/icon.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";

interface EntriesProps<Row> {
  pages: Pages<Row>;
  /** The path of the list in the API, below which an entry is deleted. */
  path: string;
  nameOf: (row: Row) => string;
  /** What stands before the name, such as a dot with its word. */
  state: (row: Row) => ComponentChildren;
  /** A sentence for a list without entries. */
  empty: string;
  /** False: the reader may not remove any. */
  changes: boolean;
}

/** A short list of addresses in a window, each with its state and a button that removes it. */
export function Entries<Row extends { id: string }>(props: EntriesProps<Row>) {
  const { pages, path, nameOf, state, empty, changes } = props;
  const task = useTask();
  const rows = pages.rows.value;
  const drop = (row: Row) =>
    task.run(async () => {
      await remove(`${path}/${encodeURIComponent(row.id)}`);
      pages.drop(row);
    });
  return (
    <>
      <Problem error={pages.error.value} onRetry={pages.refresh} />
      <Problem error={task.error.value} />
      {rows.length > 0 ? (
        <dl class="record-values">
          {rows.map((row) => (
            <div key={row.id}>
              <dt>{state(row)}</dt>
              <dd>
                <code>{nameOf(row)}</code>
                {changes ? <RemoveButton name={nameOf(row)} onRemove={() => void drop(row)} /> : null}
              </dd>
            </div>
          ))}
        </dl>
      ) : pages.done.value ? (
        <p class="quiet">{empty}</p>
      ) : null}
      {pages.done.value || !pages.ready.value ? null : (
        <button type="button" class="button small" disabled={pages.loading.value} onClick={pages.more}>
          Show older entries
        </button>
      )}
    </>
  );
}

function RemoveButton({ name, onRemove }: { name: string; onRemove: () => void }) {
  return (
    <button type="button" class="button bare" aria-label={`Remove ${name}`} title="Remove" onClick={onRemove}>
      <Icon name="cross" />
    </button>
  );
}
