import type { Figures } from "./figures.ts";
import { median, PROCESSOR } from "./table.ts";

/** One server under one way of sending. Each list has one figure a round. */
export interface InboundRow {
  name: string;
  /** Mails a second. */
  rates: number[];
  /** Processor time a mail, microseconds. */
  processor: number[];
  /** What the machine had to do, as its own average of the last minute says. */
  load: number[];
  /** How many times this row's rate the subject's is to be; null where nothing is asked. */
  goal: number | null;
}

/** The service, and what it is compared with; null where it was not measured. */
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

/** The same as figures. */
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

/** Prints a Markdown table, and nothing where it has no lines. */
export function printMarkdown(heads: readonly string[], lines: readonly (readonly string[])[]): void {
  if (lines.length === 0) return;
  for (const cells of [heads, heads.map(() => "---"), ...lines]) console.log(`| ${cells.join(" | ")} |`);
  console.log();
}
