import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useKey, useMovable } from "../state/keyboard.ts";
import { navigate } from "../state/router.ts";
import type { Picks } from "./picks.tsx";

/** Height of a row, pixels, until it is measured. */
const FIRST_ROW_PX = 36;
/** Rows that are drawn above and below the visible ones. */
const SPARE_ROWS = 12;

interface RowsProps<Row> {
  /** The name of the list for screen readers. */
  label: string;
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  hrefOf: (row: Row) => string;
  cells: (row: Row) => ComponentChildren;
  /** Key of the row whose detail is open. Moving then opens the next row. */
  selected?: string | null;
  /** How many rows at the top are new and fade in. */
  fresh?: number;
  /** False if rows follow that are not known yet. */
  complete?: boolean;
  scroller: RefObject<HTMLElement | null>;
  /** Rows that a person has selected, with the words for a row. Null: none can be. */
  picks?: (Picks<Row> & { nameOf: (row: Row) => string }) | null;
  /** Called with the pixels that are scrolled, and the index after the last visible row. */
  onView?: (top: number, end: number) => void;
}

/** Rows of one height, of which only the visible ones are drawn. `j` and `k` move between them. */
export function Rows<Row>(props: RowsProps<Row>) {
  const { rows, keyOf, hrefOf, selected = null, fresh = 0, complete = true, scroller, onView } = props;
  const { picks = null } = props;
  const top = useSignal(0);
  const height = useSignal(800);
  const rowPx = useSignal(FIRST_ROW_PX);
  const current = useRef<string | null>(selected);
  /** Its place among the rows that were drawn last. */
  const place = useRef(-1);
  const first = Math.floor(top.value / rowPx.value);
  const end = first + Math.ceil(height.value / rowPx.value);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    const onScroll = () => {
      top.value = box.scrollTop;
    };
    const observer = new ResizeObserver(() => {
      height.value = box.clientHeight;
      rowPx.value = rowHeight(box);
    });
    box.addEventListener("scroll", onScroll, { passive: true });
    observer.observe(box);
    return () => {
      box.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, [scroller]);
  useEffect(() => onView?.(top.value, end), [top.value, end, rows.length]);
  useEffect(() => {
    const shown = selected ?? current.current;
    if (shown === null) return;
    showRow(
      scroller.current,
      rows.findIndex((row) => keyOf(row) === shown),
    );
    // The detail that had the focus has been closed.
    if (selected === null && document.activeElement === document.body)
      rowLink(scroller.current, shown)?.focus();
    current.current = shown;
  }, [selected]);
  // If the current row goes away, such as an archived thread, the next one takes its place.
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => keyOf(row) === current.current);
    const next = rows[Math.min(place.current, rows.length - 1)];
    if (at >= 0) place.current = at;
    else if (selected === null && place.current >= 0 && next !== undefined) {
      current.current = keyOf(next);
      if (document.activeElement === document.body)
        requestAnimationFrame(() => rowLink(scroller.current, keyOf(next))?.focus());
    }
  }, [rows, selected]);
  useMovable({
    move: (step) => {
      const at = rows.findIndex((row) => keyOf(row) === current.current);
      const next = Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step));
      const row = rows[next];
      if (row === undefined) return;
      current.current = keyOf(row);
      showRow(scroller.current, next);
      if (selected !== null) navigate(hrefOf(row), { replace: true });
      // The focus of a detail stays in it.
      if (selected === null || scroller.current?.contains(document.activeElement) === true)
        requestAnimationFrame(() => rowLink(scroller.current, keyOf(row))?.focus());
    },
  });

  const pick = (span: boolean) => {
    const row = rows.find((one) => keyOf(one) === current.current);
    if (row !== undefined) picks?.toggle(row, span);
  };
  useKey("x", () => pick(false));
  useKey("X", () => pick(true));

  const from = Math.max(0, Math.min(first, rows.length) - SPARE_ROWS);
  return (
    <ul class="rows" aria-label={props.label} style={{ height: `${rows.length * rowPx.value}px` }}>
      {rows.slice(from, end + SPARE_ROWS).map((row, index) => {
        const at = from + index;
        return (
          <li
            key={keyOf(row)}
            class={at < fresh ? "fresh" : undefined}
            style={{ top: `${at * rowPx.value}px` }}
            aria-setsize={complete ? rows.length : -1}
            aria-posinset={at + 1}
            onFocusIn={() => {
              current.current = keyOf(row);
            }}
          >
            {picks === null ? null : (
              <label class="pick">
                <input
                  type="checkbox"
                  aria-label={`Select ${picks.nameOf(row)}`}
                  checked={picks.picked.value.has(keyOf(row))}
                  onClick={(event) => picks.toggle(row, event.shiftKey)}
                />
              </label>
            )}
            <a
              class="row"
              href={hrefOf(row)}
              data-row={keyOf(row)}
              aria-current={keyOf(row) === selected ? "true" : undefined}
            >
              {props.cells(row)}
            </a>
          </li>
        );
      })}
    </ul>
  );
}

function rowLink(box: HTMLElement | null, id: string): HTMLElement | null {
  return box?.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`) ?? null;
}

/** Returns the height of a row, which differs on phones. */
function rowHeight(box: HTMLElement): number {
  return Number.parseFloat(getComputedStyle(box).getPropertyValue("--row")) || FIRST_ROW_PX;
}

/** Scrolls just enough for a row to be visible. */
function showRow(box: HTMLElement | null, at: number): void {
  if (box === null || at < 0) return;
  const rowPx = rowHeight(box);
  const top = at * rowPx;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowPx > box.scrollTop + box.clientHeight) box.scrollTop = top + rowPx - box.clientHeight;
}
