/** What a bench has measured, as numbers: the tables are for people. */
import { readFileSync, writeFileSync } from "node:fs";
import { figuresFile } from "./options.ts";
import { median, type Row } from "./table.ts";

/** Figures by row and column. What was not measured is not there. */
export type Figures = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Column of the highest of a row's rounds. */
export const MOST = "most";

/** Leaves the figures in the file that `--json=FILE` names; without it, nowhere. */
export function handOver(figures: Figures): void {
  const file = figuresFile();
  if (file !== null) writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`);
}

/** Rows of a bench as figures: the median of the rounds under their unit, the highest, and the medians beside it. */
export function rowFigures(unit: string, rows: readonly Row[]): Figures {
  return Object.fromEntries(
    rows.map(({ name, rounds, more = {} }) => [
      name,
      {
        [unit]: median(rounds),
        [MOST]: Math.max(...rounds),
        ...Object.fromEntries(Object.entries(more).map(([column, values]) => [column, median(values)])),
      },
    ]),
  );
}

/** The figures that a bench has left in a file. Throws where there are none, or where one is no number. */
export function readFigures(file: string): Figures {
  // The shape that `handOver` writes. A figure that could not be had (NaN) has become null.
  const figures = JSON.parse(readFileSync(file, "utf8")) as Record<string, Record<string, number | null>>;
  const read = Object.entries(figures).map(([row, columns]) => [row, numbersOf(row, columns)] as const);
  if (read.length === 0) throw new Error("no figures were handed over");
  return Object.fromEntries(read);
}

function numbersOf(row: string, columns: Readonly<Record<string, number | null>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(columns).map(([column, value]) => {
      if (typeof value !== "number") throw new Error(`${row}, ${column} is no number`);
      return [column, value];
    }),
  );
}
