/** The figures of a bench as numbers; the tables are for people. */
import { readFileSync, writeFileSync } from "node:fs";
import { figuresFile } from "./options.ts";
import { median, type Row } from "./table.ts";

/** Figures by row and column. A figure that was not measured is missing. */
export type Figures = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Column of the highest of a row's rounds. */
export const MOST = "most";

/** Writes the figures to the file that `--json=FILE` names, if it is given. */
export function handOver(figures: Figures): void {
  const file = figuresFile();
  if (file !== null) writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`);
}

/**
 * Returns the rows of a bench as figures: the median of the rounds under their unit, the highest, and the medians of
 * the other columns.
 */
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

/** Reads the figures that a bench wrote to a file. Throws if there are none, or if one is not a number. */
export function readFigures(file: string): Figures {
  // This is the shape that `handOver` writes. A figure that is not available (NaN) has become null.
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
