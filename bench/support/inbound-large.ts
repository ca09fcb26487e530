/** Measures the memory that the service needs for large messages that arrive at once. */
import { loadavg } from "node:os";
import type { Figures } from "./figures.ts";
import { printMarkdown } from "./inbound-table.ts";
import { type Load, send } from "./inbound-mail.ts";
import type { Kind } from "./inbound-targets.ts";
import { forgetPeak, peakMemory, residentMemory } from "./peak-memory.ts";
import { median } from "./table.ts";

/** Messages of the largest size that the service may hold in memory at a time. */
const GOAL = 4;
const MEGABYTE = 1_000_000;

/** Unmeasured messages first, and the measured ones. */
export interface LargeLoad {
  /** Name of the message for the table. */
  name: string;
  warm: Omit<Load, "port">;
  large: Omit<Load, "port">;
  /** Size of one large message. */
  octets: number;
}

/** One large load with a figure per round; memory in bytes. */
export interface LargeRow {
  load: LargeLoad;
  seconds: number[];
  before: number[];
  growth: number[];
}

/** Sends large messages for this many rounds, each to a service that has just started. */
export async function measureLarge(
  home: string,
  [name, start]: Kind,
  load: LargeLoad,
  rounds: number,
): Promise<LargeRow> {
  const row: LargeRow = { load, seconds: [], before: [], growth: [] };
  const { warm, large } = load;
  for (let round = 0; round < rounds; round++) {
    const target = await start();
    // Starts its threads and loads their code before the first reading.
    await send(home, { ...warm, port: target.port });
    const resident = residentMemory(target.pid);
    forgetPeak(target.pid);
    row.seconds.push(await send(home, { ...large, port: target.port }));
    row.before.push(resident);
    row.growth.push(peakMemory(target.pid) - resident);
    const taken = await target.end();
    if (taken !== warm.mails + large.mails) throw new Error(`${name} has taken ${taken} mails`);
  }
  return row;
}

const HEADS = ["", "seconds", "RSS before, MB", "RSS growth, MB", "growth / size", "goal", "load"];

/** Returns the loads as figures. */
export function largeFigures(rows: readonly LargeRow[]): Figures {
  return Object.fromEntries(
    rows.map(({ load, seconds, before, growth }) => [
      load.name,
      {
        seconds: median(seconds),
        "RSS before MB": median(before) / MEGABYTE,
        "RSS growth MB": median(growth) / MEGABYTE,
        "size MB": load.octets / MEGABYTE,
      },
    ]),
  );
}

/** Prints how memory grew with each load as a Markdown table. */
export function printLarge(rows: readonly LargeRow[]): void {
  const lines = rows.map(({ load, seconds, before, growth }) => [
    load.name,
    median(seconds).toFixed(1),
    (median(before) / MEGABYTE).toFixed(0),
    (median(growth) / MEGABYTE).toFixed(0),
    (median(growth) / load.octets).toFixed(1),
    `≤ ${GOAL}`,
    (loadavg()[0] ?? 0).toFixed(1),
  ]);
  printMarkdown(HEADS, lines);
}
