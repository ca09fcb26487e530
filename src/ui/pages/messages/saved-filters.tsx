import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Icon } from "../../controls/icon.tsx";
import { Form, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { query } from "../../state/router.ts";
import { keepFilters, readFilters, savedFilters, withFilter } from "../../state/saved-filters.ts";
import { FILTER_NAMES } from "./filter-names.ts";

/** Returns the query of the filter that the page shows; empty if it shows all messages. */
function currentSearch(): string {
  const set = FILTER_NAMES.flatMap((name) => {
    const value = query.value.get(name);
    return value === null ? [] : [[name, value]];
  });
  return new URLSearchParams(set).toString();
}

/** The filters that this browser keeps, and a field that keeps the one which is shown. */
export function SavedFilters() {
  const name = useSignal("");
  const task = useTask();
  useEffect(readFilters, []);
  const search = currentSearch();
  const save = async () => {
    keepFilters(withFilter(savedFilters.peek(), { name: name.value, search }));
    name.value = "";
  };
  return (
    <>
      <ul class="saved-filters" aria-label="Saved filters">
        {savedFilters.value.map((saved) => (
          <li key={saved.name}>
            <a class="cut" dir="auto" href={`/messages?${saved.search}`}>
              {saved.name}
            </a>
            <button
              type="button"
              class="button bare small"
              aria-label={`Forget ${saved.name}`}
              onClick={() => keepFilters(savedFilters.peek().filter((one) => one !== saved))}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
      {search === "" ? null : (
        <Form class="form" task={task} onSubmit={save}>
          <TextField label="Name of this filter" name="name" value={name} placeholder="Bounces of the shop" />
          <button type="submit" class="button" disabled={name.value.trim() === ""}>
            Save this filter
          </button>
        </Form>
      )}
    </>
  );
}
