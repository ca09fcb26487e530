/** Column of the processor time per request or message: steadier than a rate if other users are busy. */
export const PROCESSOR = "CPU µs each";

/** One row of a bench: its figure in each round, and further facts. */
export interface Row {
  name: string;
  rounds: number[];
  /** Further columns, each the median of its rounds. */
  more?: Record<string, number[]>;
}

/** Returns the middle value; the lower of the two if their number is even; zero if there is none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0;
}

/** Prints rows as a Markdown table: the median of the rounds, their range, and the ratio to each floor. */
export function printTable(unit: string, subjects: readonly Row[], floors: readonly Row[]): void {
  const extra = [...new Set([...subjects, ...floors].flatMap((row) => Object.keys(row.more ?? {})))];
  const heads = ["", unit, "range", ...extra, ...floors.map((floor) => `of ${floor.name}`)];
  const lines = [...subjects, ...floors].map((row) => [
    row.name,
    Math.round(median(row.rounds)),
    `${Math.round(Math.min(...row.rounds))}–${Math.round(Math.max(...row.rounds))}`,
    ...extra.map((name) => round1(median(row.more?.[name] ?? []))),
    ...floors.map((floor) => (floors.includes(row) ? "" : ratio(row, floor))),
  ]);
  for (const cells of [heads, heads.map(() => "---"), ...lines]) console.log(`| ${cells.join(" | ")} |`);
}

function ratio(row: Row, floor: Row): string {
  return (median(row.rounds) / median(floor.rounds)).toFixed(2);
}

function round1(value: number): number {
  return Math.round(value * 10) / 10;
}
