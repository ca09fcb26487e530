/** Lines kept of one conversation: many hosts that all fail must not fill the record. */
export const MAX_TRANSCRIPT_LINES = 200;

const NOTICE = /^\* (\d+) lines left out$/;

/** The line that stands for others of a conversation. Those that stood for others themselves count as many. */
export function leftOut(lines: readonly string[]): string {
  const count = lines.reduce((sum, line) => sum + Number(NOTICE.exec(line)?.[1] ?? 1), 0);
  return `* ${count} lines left out`;
}
