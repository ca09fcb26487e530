import { keepAlive } from "../clock.ts";
import type { Config } from "../config.ts";
import { SETTINGS } from "../config/settings.ts";
import { AppError, SettingsError } from "../core/errors.ts";
import type { Clock } from "../core/time/clock.ts";
import { isUnavailable } from "../store/sql/errors.ts";
import { VERSION_TEXT } from "../version.ts";
import type { Command } from "./support/command.ts";
import {
  CommandError,
  EX_CONFIG,
  EX_NO,
  EX_OK,
  EX_SOFTWARE,
  EX_UNAVAILABLE,
  EX_USAGE,
} from "./support/exit.ts";
import { createOutput, printable } from "./support/output.ts";
import { findCommand, helpText, meantCommand } from "./table.ts";

/** The time, the streams and the settings that a command line reads and writes, besides files. */
export interface Shell {
  clock: Clock;
  /** Reads the settings, for a command that needs them. Throws ConfigError if one is wrong. */
  readConfig(): Config;
  out(text: string): void;
  err(text: string): void;
  /** True if a person reads standard output. */
  outIsTerminal: boolean;
}

/** Runs the command of the arguments. Returns its exit code, or throws an error for `failureOf`. */
export async function runCommand(argv: readonly string[], shell: Shell): Promise<number> {
  const [first = "", ...others] = argv;
  if (first === "--version") return say(shell, VERSION_TEXT);
  if (first === "help") return runCommand([...others, "--help"], shell);
  const asksForHelp = argv.at(-1) === "--help" || argv.at(-1) === "-h";
  const group = asksForHelp && argv.length <= 2 ? helpText(argv.length === 1 ? null : first) : null;
  if (group !== null && !isCommand(first)) return say(shell, group);
  const found = findCommand(argv);
  if (found === null)
    throw new CommandError(EX_USAGE, `no such command: ${argv.join(" ")}\n${adviceOn(argv)}`);
  return run(await found.entry.load(), found.rest, shell);
}

/** Returns the exit code of an error, and what standard error says of it. */
export function failureOf(error: unknown, argv: readonly string[]): { code: number; says: string } {
  const code = exitCodeOf(error);
  const says = `postrider: ${printable(error instanceof Error ? error.message : String(error))}\n`;
  const known = code === EX_USAGE && findCommand(argv) !== null;
  return { code, says: known ? `${says}postrider: see ${[...words(argv), "--help"].join(" ")}\n` : says };
}

/** Says what to call instead of a command that does not exist. */
function adviceOn(argv: readonly string[]): string {
  const meant = meantCommand(argv);
  if (meant !== null) return `postrider: did you mean \`postrider ${meant}\`?`;
  return helpText(argv[0] ?? null) ?? "postrider: see postrider --help";
}

/** Returns true if the word alone is a command, as `migrate` is, which is also the name of a group. */
function isCommand(word: string): boolean {
  return !word.startsWith("-") && findCommand([word]) !== null;
}

function say({ out }: Shell, text: string): number {
  out(`${text}\n`);
  return EX_OK;
}

async function run(command: Command, argv: readonly string[], shell: Shell): Promise<number> {
  const prepared = command.prepare(argv);
  if (prepared.help) return say(shell, command.help);
  const config = shell.readConfig();
  const out = createOutput(prepared.json ?? !shell.outIsTerminal, shell);
  // The clock's timers do not keep the process alive. If only they are left, as with a locked database, Bun would spin
  // until one fires.
  const release = keepAlive();
  try {
    return await prepared.run({ config, settings: SETTINGS, clock: shell.clock, out });
  } finally {
    release();
  }
}

function words(argv: readonly string[]): readonly string[] {
  const rest = findCommand(argv)?.rest.length ?? 0;
  return ["postrider", ...argv.slice(0, argv.length - rest)];
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof SettingsError) return EX_CONFIG;
  if (error instanceof AppError) return EX_NO;
  return isUnavailable(error) ? EX_UNAVAILABLE : EX_SOFTWARE;
}
