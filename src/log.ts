import { writeSync } from "node:fs";
import {
  configure,
  getLogger,
  type Logger,
  type LogLevel as LogtapeLevel,
  type LogRecord,
} from "@logtape/logtape";

export type LogLevel = "debug" | "info" | "warning" | "error";
export type LogFormat = "json" | "pretty";
export type Log = Logger;

/** One log line as JSON: time, level, room, message, then the properties given, which cannot take the place of those. */
function jsonLine(record: LogRecord): string {
  const head = {
    time: new Date(record.timestamp).toISOString(),
    level: record.level,
    room: record.category.slice(1).join("."),
    message: record.message.map(String).join(""),
  };
  try {
    return JSON.stringify({ ...head, ...record.properties, ...head }, shown);
  } catch (error) {
    // A value that holds itself, say: the line must not be lost for that, nor break the file for whoever reads it.
    return JSON.stringify({ ...head, unprintable: String(error) });
  }
}

/** JSON knows nothing of errors and would show them as `{}`. */
function shown(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.stack ?? String(value);
  return typeof value === "bigint" ? String(value) : value;
}

/** One log line for a person at a terminal: time of day, level, room, message, then the properties given. */
function prettyLine(record: LogRecord): string {
  const time = new Date(record.timestamp).toISOString().slice(11, 23);
  const room = record.category.slice(1).join(".");
  const properties = Object.entries(record.properties)
    .map(([name, value]) => `${name}=${prettyValue(value)}`)
    .join(" ");
  return `${time} ${record.level.padEnd(7)} ${room.padEnd(8)} ${record.message.map(String).join("")} ${properties}`.trimEnd();
}

function prettyValue(value: unknown): string {
  try {
    const text = typeof value === "string" ? value : (JSON.stringify(value, shown) ?? "undefined");
    // What strangers said must neither begin a line of its own nor command the terminal.
    return text.replace(/[\x00-\x1f\x7f-\x9f]/g, (control) => encodeURIComponent(control));
  } catch (error) {
    return `unprintable: ${String(error)}`;
  }
}

/** Where a log cannot be written, as on a full disk or to a reader that has ended, its lines are lost and nothing else. */
function write(text: string): void {
  if (!process.stderr.destroyed) {
    process.stderr.write(text);
    return;
  }
  // The stream has ended with its first failure; a disk may have room again.
  try {
    writeSync(STANDARD_ERROR, text);
  } catch {}
}

const STANDARD_ERROR = 2;
/** An error of a stream that nobody hears ends the process. */
const bearIt = (): void => undefined;

/** Sets where and how log lines are written: to standard error, one line a record. */
export async function configureLog(level: LogLevel, format: LogFormat): Promise<void> {
  process.stderr.off("error", bearIt).on("error", bearIt);
  const line = format === "json" ? jsonLine : prettyLine;
  await configure({
    reset: true,
    sinks: { stderr: (record: LogRecord) => write(`${line(record)}\n`) },
    loggers: [
      { category: "postrider", sinks: ["stderr"], lowestLevel: level satisfies LogtapeLevel },
      { category: ["logtape", "meta"], sinks: ["stderr"], lowestLevel: "error" },
    ],
  });
}

/** Loggers by room: finding one takes longer than leaving a line out. */
const loggers = new Map<string, Log>();

/** The logger of a room: `log("smtp").info("session ended", { commands: 5 })`. Silent until `configureLog` has run. */
export function log(room: string): Log {
  const known = loggers.get(room);
  if (known !== undefined) return known;
  const made = getLogger(["postrider", room]);
  loggers.set(room, made);
  return made;
}
