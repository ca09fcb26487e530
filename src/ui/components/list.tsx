import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { MAX_ROWS, type Pages } from "../api/pages.ts";
import { useMovable } from "../state/keyboard.ts";
import { navigate } from "../state/router.ts";
import { counted } from "../words/amounts.ts";
import { Problem } from "./problem.tsx";

/** Pixels of a row until the style sheet has been asked. */
const FIRST_ROW_PX = 36;
/** Rows that are drawn above and below the visible ones. */
const SPARE_ROWS = 12;
/** The next page is read when fewer rows than this are left below. */
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
  empty: ComponentChildren;
}

/** A list of the API: one line per row, read page by page, drawn only as far as it is visible. */
export function List<Row>(props: ListProps<Row>) {
  const { label, pages, keyOf, hrefOf, columns, selected = null } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const first = useSignal(0);
  const height = useSignal(800);
  const rowPx = useSignal(FIRST_ROW_PX);
  const current = useRef<string | null>(selected);
  const rows = pages.rows.value;
  const fresh = useFresh(pages, keyOf);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    const observer = new ResizeObserver(() => {
      height.value = box.clientHeight;
      rowPx.value = rowHeight(box);
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, [height, rowPx]);

  const onScroll = () => {
    const top = scroller.current?.scrollTop ?? 0;
    first.value = Math.floor(top / rowPx.value);
    pages.hold(top > TOP_PX);
  };
  const visible = Math.ceil(height.value / rowPx.value);
  const from = Math.max(0, Math.min(first.value, rows.length) - SPARE_ROWS);
  const to = Math.min(rows.length, first.value + visible + SPARE_ROWS);
  const nearEnd = first.value + visible + READ_AHEAD_ROWS >= rows.length;
  const wantsMore = pages.ready.value && nearEnd && !pages.done.value && !pages.full.value;
  useEffect(() => {
    if (wantsMore && pages.error.peek() === null) pages.more();
  }, [wantsMore, rows.length, pages]);

  useEffect(() => {
    if (selected === null) return;
    current.current = selected;
    showRow(
      scroller.current,
      rows.findIndex((row) => keyOf(row) === selected),
    );
  }, [selected]);

  useMovable({
    move: (step) => {
      const at = rows.findIndex((row) => keyOf(row) === current.current);
      const next = Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step));
      const row = rows[next];
      if (row === undefined) return;
      current.current = keyOf(row);
      showRow(scroller.current, next);
      if (selected !== null) navigate(hrefOf(row), { replace: true });
      else requestAnimationFrame(() => rowLink(scroller.current, keyOf(row))?.focus());
    },
  });

  const showNew = () => {
    pages.hold(false);
    scroller.current?.scrollTo({ top: 0 });
  };

  return (
    <div class={`list ${columns}`} aria-busy={pages.loading.value}>
      {props.heads === undefined ? null : (
        <div class="list-heads" aria-hidden="true">
          {props.heads.map((head) => (
            <span key={head}>{head}</span>
          ))}
        </div>
      )}
      {pages.waiting.value > 0 ? (
        <button type="button" class="pill" onClick={showNew}>
          {counted(pages.waiting.value, "new", "new")}
        </button>
      ) : null}
      <div class="list-scroll" ref={scroller} onScroll={onScroll}>
        <Problem error={pages.error.value} onRetry={pages.refresh} />
        {rows.length > 0 ? (
          <ul aria-label={label} style={{ height: `${rows.length * rowPx.value}px` }}>
            {rows.slice(from, to).map((row, index) => (
              <ListRow
                key={keyOf(row)}
                id={keyOf(row)}
                href={hrefOf(row)}
                at={from + index}
                top={(from + index) * rowPx.value}
                fresh={from + index < fresh}
                selected={keyOf(row) === selected}
                size={pages.done.value ? rows.length : -1}
              >
                {props.cells(row)}
              </ListRow>
            ))}
          </ul>
        ) : pages.done.value ? (
          props.empty
        ) : null}
        {pages.full.value ? (
          <p class="list-end">The first {counted(MAX_ROWS, "row")} are shown. Filter to see older ones.</p>
        ) : null}
      </div>
    </div>
  );
}

interface RowProps {
  id: string;
  href: string;
  at: number;
  /** Pixels. */
  top: number;
  fresh: boolean;
  selected: boolean;
  size: number;
  children: ComponentChildren;
}

function ListRow({ id, href, at, top, fresh, selected, size, children }: RowProps) {
  return (
    <li
      class={fresh ? "fresh" : undefined}
      style={{ transform: `translateY(${top}px)` }}
      aria-setsize={size}
      aria-posinset={at + 1}
    >
      <a class="row" href={href} data-row={id} aria-current={selected ? "true" : undefined}>
        {children}
      </a>
    </li>
  );
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

function rowLink(box: HTMLElement | null, id: string): HTMLElement | null {
  return box?.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`) ?? null;
}

/** Returns the height of a row, which differs on phones. */
function rowHeight(box: HTMLElement): number {
  return Number.parseFloat(getComputedStyle(box).getPropertyValue("--row")) || FIRST_ROW_PX;
}

/** Scrolls just as far as needed for a row to be visible. */
function showRow(box: HTMLElement | null, at: number): void {
  if (box === null || at < 0) return;
  const rowPx = rowHeight(box);
  const top = at * rowPx;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowPx > box.scrollTop + box.clientHeight) box.scrollTop = top + rowPx - box.clientHeight;
}
