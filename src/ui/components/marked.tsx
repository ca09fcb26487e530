import type { MessageSummary } from "../api/types.ts";

type Highlight = NonNullable<MessageSummary["highlights"]>[number];

/** The fragment of a found message with its words marked: one of the body or a file name, because the subject is shown anyway. */
export function Marked({ highlights }: { highlights: readonly Highlight[] }) {
  const shown = highlights.find(({ field }) => field !== "subject");
  return shown === undefined ? null : <span class="quiet marked"> {marks(shown)}</span>;
}

function marks({ fragment, ranges }: Highlight) {
  let at = 0;
  const parts = ranges.map(({ start, end }) => {
    const before = fragment.slice(at, start);
    at = end;
    return (
      <>
        {before}
        <mark>{fragment.slice(start, end)}</mark>
      </>
    );
  });
  return (
    <>
      {parts}
      {fragment.slice(at)}
    </>
  );
}
