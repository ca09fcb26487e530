import type { Notice } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import type { Tone } from "../../words/status.ts";

const LEVELS: Readonly<Record<Notice["level"], { tone: Tone; word: string }>> = {
  fail: { tone: "bad", word: "Broken" },
  warn: { tone: "late", word: "Warning" },
  info: { tone: "moving", word: "Info" },
};

/** The state of a notice as a dot with its word. */
export function NoticeStatus({ notice: { at, level, endedAt } }: { notice: Notice }) {
  const isOver = endedAt !== null && endedAt !== at;
  return isOver ? <Dot tone="quiet" word="Over" /> : <Dot {...LEVELS[level]} />;
}
