import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { MAX_ROWS, type Pages } from "../api/pages.ts";
import { counted } from "../words/amounts.ts";
import { EmptyState } from "./empty.tsx";
import { Problem } from "../controls/problem.tsx";
import { type Bulk, PickBar, usePicks } from "./picks.tsx";
import { Rows } from "./rows.tsx";

/** The next page is read when fewer rows than this are left below a list that is scrolled. */
const READ_AHEAD_ROWS = 30;
/** Below this scroll position the list counts as being at its top. */
const TOP_PX = 8;

interface ListProps<Row> {
  /** The name of the list for screen readers. */
  label: string;
  pages: Pages<Row>;
  keyOf: (row: Row) => string;
  hrefOf: (row: Row) => string;
  /** The cells of a row, as many as `columns` has. */
  cells: (row: Row) => ComponentChildren;
  /** Name of the class with the widths of the columns. */
  columns: string;
  /** Heads of the columns. Screen readers skip them, because a row must make sense by itself. */
  heads?: readonly string[];
  /** Key of the row whose detail is open. Moving then opens the next row. */
  selected?: string | null;
  /** The cells of that row, shown above the list if the list does not have it: it is older, or the filter leaves it out. */
  pinned?: ComponentChildren;
  empty: ComponentChildren;
  /** Actions for selected rows. Absent: none can be selected. */
  bulk?: Bulk<Row> | undefined;
}

/** A list of the API: one line per row, read page by page. New rows appear at the top, unless it is scrolled. */
export function List<Row>(props: ListProps<Row>) {
  const { label, pages, keyOf, hrefOf, cells, columns, selected = null, bulk } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const rows = pages.rows.value;
  const fresh = useFresh(pages, keyOf);
  const picks = usePicks(pages, keyOf);
  const onView = (top: number, end: number) => {
    pages.hold(top > TOP_PX);
    const ahead = top > TOP_PX ? READ_AHEAD_ROWS : 0;
    const wantsMore = end + ahead >= rows.length && !pages.done.peek() && !pages.full.peek();
    if (wantsMore && pages.ready.peek() && pages.error.peek() === null) pages.more();
  };
  const showNew = () => {
    pages.hold(false);
    scroller.current?.scrollTo({ top: 0 });
  };
  return (
    <div class={`list ${columns} ${bulk === undefined ? "" : "pickable"}`} aria-busy={pages.loading.value}>
      {bulk === undefined ? null : <PickBar picks={picks} pages={pages} bulk={bulk} />}
      {props.heads === undefined ? null : <ListHeads heads={props.heads} />}
      {pages.waiting.value > 0 ? (
        <button type="button" class="pill" onClick={showNew}>
          {counted(pages.waiting.value, "new", "new")}
        </button>
      ) : null}
      {selected !== null && pages.ready.value && !rows.some((row) => keyOf(row) === selected)
        ? props.pinned
        : null}
      <div class="list-scroll" ref={scroller}>
        <Problem error={pages.error.value} onRetry={pages.refresh} />
        {rows.length > 0 ? (
          <Rows
            {...{ label, rows, keyOf, hrefOf, cells, selected, fresh, scroller, onView }}
            complete={pages.done.value}
            picks={bulk === undefined ? null : { ...picks, nameOf: bulk.nameOf }}
          />
        ) : pages.done.value ? (
          props.empty
        ) : pages.ready.value && !pages.loading.value ? (
          <SearchFurther onMore={pages.more} />
        ) : null}
        {pages.full.value ? (
          <p class="list-end">The first {counted(MAX_ROWS, "row")} are shown. Filter to see older ones.</p>
        ) : null}
      </div>
    </div>
  );
}

/** One search reads many rows, but not millions. */
function SearchFurther({ onMore }: { onMore: () => void }) {
  const button = (
    <button type="button" class="button" onClick={onMore}>
      Search further back
    </button>
  );
  return <EmptyState action={button}>Nothing was found in the newest part of the list.</EmptyState>;
}

/** Returns how many rows have come since the list was first drawn. Only those fade in. */
function useFresh<Row>(pages: Pages<Row>, keyOf: (row: Row) => string): number {
  const first = useRef<{ pages: Pages<Row>; key: string | null } | null>(null);
  const rows = pages.rows.value;
  if (first.current?.pages !== pages && pages.ready.value)
    first.current = { pages, key: rows[0] === undefined ? null : keyOf(rows[0]) };
  const known = first.current;
  if (known === null || known.pages !== pages) return 0;
  return known.key === null ? rows.length : rows.findIndex((row) => keyOf(row) === known.key);
}

/** Headings of the columns. Screen readers have the words of the rows. */
export function ListHeads({ heads }: { heads: readonly string[] }) {
  return (
    <div class="list-heads" aria-hidden="true">
      {heads.map((head, column) => (
        <span key={column}>{head}</span>
      ))}
    </div>
  );
}
