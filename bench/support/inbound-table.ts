import type { Figures } from "./figures.ts";
import { median, PROCESSOR } from "./table.ts";

/** One server with one way of sending. Each list has one figure per round. */
export interface InboundRow {
  name: string;
  /** Messages per second. */
  rates: number[];
  /** Processor time per message, microseconds. */
  processor: number[];
  /** The machine's load average of the last minute. */
  load: number[];
  /** The goal as a multiple of this row's rate; null if there is none. */
  goal: number | null;
}

/** The service, and its peer; null if the peer was not measured. */
export interface Comparison {
  subject: InboundRow | null;
  others: InboundRow[];
}

const HEADS = ["", "msg/s", "range", PROCESSOR, "load", "inbound is", "goal"];

/** Prints comparisons as one Markdown table. */
export function printComparisons(comparisons: readonly Comparison[]): void {
  const lines = comparisons.flatMap(({ subject, others }) => [
    ...(subject === null ? [] : [[...figures(subject), "", ""]]),
    ...others.map((row) => [
      ...figures(row),
      subject === null ? "" : `${(median(subject.rates) / median(row.rates)).toFixed(2)} of it`,
      row.goal === null ? "" : `≥ ${row.goal}`,
    ]),
  ]);
  printMarkdown(HEADS, lines);
}

/** Returns the comparisons as figures. */
export function comparisonFigures(comparisons: readonly Comparison[]): Figures {
  const rows = comparisons.flatMap(({ subject, others }) => [
    ...(subject === null ? [] : [subject]),
    ...others,
  ]);
  return Object.fromEntries(
    rows.map(({ name, rates, processor, load }) => [
      name,
      { "msg/s": median(rates), [PROCESSOR]: median(processor), load: median(load) },
    ]),
  );
}

function figures({ name, rates, processor, load }: InboundRow): string[] {
  return [
    name,
    median(rates).toFixed(0),
    `${Math.min(...rates).toFixed(0)}–${Math.max(...rates).toFixed(0)}`,
    median(processor).toFixed(0),
    median(load).toFixed(1),
  ];
}

/** Prints a Markdown table, or nothing if it has no lines. */
export function printMarkdown(heads: readonly string[], lines: readonly (readonly string[])[]): void {
  if (lines.length === 0) return;
  for (const cells of [heads, heads.map(() => "---"), ...lines]) console.log(`| ${cells.join(" | ")} |`);
  console.log();
}
