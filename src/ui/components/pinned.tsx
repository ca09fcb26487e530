import type { ComponentChildren } from "preact";
import { type Resource, useResource } from "../api/resource.ts";

interface PinnedProps<Row> {
  /** The resource that the open detail shows too, which is read once for both. */
  name: string;
  load: () => Promise<Row>;
  cells: (row: Row) => ComponentChildren;
}

/** The row of an open detail that its list does not have, because it is older or the filter leaves it out. */
export function Pinned<Row>({ name, load, cells }: PinnedProps<Row>) {
  const found: Resource<Row>["value"] = useResource(name, load).value;
  if (found.value === null) return null;
  return (
    <section class="pinned" aria-label="Open, and not in this list">
      <p class="quiet">Open, and not in this list</p>
      <div class="row" aria-current="true">
        {cells(found.value)}
      </div>
    </section>
  );
}
