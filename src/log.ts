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

/** Formats a log line as JSON: time, level, room, message, then the properties, which cannot replace the others. */
function jsonLine(record: LogRecord): string {
  const head = {
    time: new Date(record.timestamp).toISOString(),
    level: record.level,
    room: record.category.slice(1).join("."),
    message: record.message.map(String).join(""),
  };
  const { properties } = record;
  try {
    const whole = { ...head, ...properties, ...head };
    return Object.values(properties).every(isPlain) ? JSON.stringify(whole) : JSON.stringify(whole, shown);
  } catch (error) {
    // If a value cannot be written as JSON, such as a circular one, keep the rest of the line.
    return JSON.stringify({ ...head, unprintable: String(error) });
  }
}

/**
 * Returns true if JSON shows a value as it is. This holds for most, and calling `shown` costs more than the rest of
 * a line.
 */
function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((one) => typeof one === "string");
  return value === null || (typeof value !== "object" && typeof value !== "bigint");
}

/** Converts values that JSON cannot show, such as errors, which would become `{}`. */
function shown(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.stack ?? String(value);
  return typeof value === "bigint" ? String(value) : value;
}

/** Formats a log line for a terminal: time of day, level, room, message, then the properties. */
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
    // Text from clients must not start a new line or control the terminal.
    return text.replace(/[\x00-\x1f\x7f-\x9f]/g, (control) => encodeURIComponent(control));
  } catch (error) {
    return `unprintable: ${String(error)}`;
  }
}

/**
 * Lines of this tick of the event loop. They are written together at its end, because each write is a system call.
 */
let waiting = "";
/** Maximum number of buffered characters that are written before the end of the tick. */
const MAX_WAITING_CHARS = 64 * 1024;

function add(line: string): void {
  if (waiting === "") setImmediate(flush);
  waiting += `${line}\n`;
  if (waiting.length > MAX_WAITING_CHARS) flush();
}

function flush(): void {
  const lines = waiting;
  waiting = "";
  if (lines !== "") write(lines);
}

/** Writes lines. If that fails, as on a full disk, only they are lost. */
function write(text: string): void {
  if (!process.stderr.destroyed) {
    process.stderr.write(text);
    return;
  }
  // The stream ends with its first failure, but the disk may have room again.
  try {
    writeSync(STANDARD_ERROR, text);
  } catch {}
}

const STANDARD_ERROR = 2;
/** Handles errors of the stream, which would otherwise end the process. */
const ignoreError = (): void => undefined;

/** Configures the log, which writes one line per record to standard error. */
export async function configureLog(level: LogLevel, format: LogFormat): Promise<void> {
  process.stderr.off("error", ignoreError).on("error", ignoreError);
  process.off("exit", flush).on("exit", flush);
  const line = format === "json" ? jsonLine : prettyLine;
  await configure({
    reset: true,
    sinks: { stderr: (record: LogRecord) => add(line(record)) },
    loggers: [
      { category: "postrider", sinks: ["stderr"], lowestLevel: level satisfies LogtapeLevel },
      { category: ["logtape", "meta"], sinks: ["stderr"], lowestLevel: "error" },
    ],
  });
}

/** Loggers by room, because finding one takes longer than skipping a line. */
const loggers = new Map<string, Log>();

/** Returns the logger of a room: `log("smtp").info("session ended", { commands: 5 })`. Silent until `configureLog` has run. */
export function log(room: string): Log {
  const known = loggers.get(room);
  if (known !== undefined) return known;
  const made = getLogger(["postrider", room]);
  loggers.set(room, made);
  return made;
}
