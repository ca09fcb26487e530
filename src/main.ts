import { keepAlive, systemClock } from "./clock.ts";
import type { Command } from "./commands/support/command.ts";
import {
  CommandError,
  EX_CONFIG,
  EX_NO,
  EX_SOFTWARE,
  EX_UNAVAILABLE,
  EX_USAGE,
} from "./commands/support/exit.ts";
import { createOutput, printable } from "./commands/support/output.ts";
import { COMMANDS, findCommand, helpText, meantCommand } from "./commands/table.ts";
import { loadConfig, useUtc } from "./config.ts";
import { SETTINGS } from "./config/settings.ts";
import { AppError, SettingsError } from "./core/errors.ts";
import { isUnavailable } from "./store/sql/errors.ts";
import { VERSION_TEXT } from "./version.ts";

// New files hold messages and secrets, so only their owner may read them.
process.umask(0o077);
useUtc();
const given = process.argv.slice(2);
// The reader may close the pipe, as in `postrider dns zone | head`. The service itself continues then.
process.stdout.on("error", (error) => {
  if (findCommand(given)?.entry === COMMANDS.serve) return;
  const code = "code" in error ? String(error.code) : error.message;
  if (code === "EPIPE") process.exit(0);
  fail(new Error(`standard output cannot be written (${code})`), given);
});
await main(given);

async function main(argv: readonly string[]): Promise<void> {
  try {
    process.exitCode = await answer(argv);
  } catch (error) {
    fail(error, argv);
  }
}

/** Runs the command of the arguments. Returns the exit code. */
async function answer(argv: readonly string[]): Promise<number> {
  const [first = "", ...others] = argv;
  if (first === "--version") return say(VERSION_TEXT);
  if (first === "help") return answer([...others, "--help"]);
  const asksForHelp = argv.at(-1) === "--help" || argv.at(-1) === "-h";
  const group = asksForHelp && argv.length <= 2 ? helpText(argv.length === 1 ? null : first) : null;
  if (group !== null && !isCommand(first)) return say(group);
  const found = findCommand(argv);
  if (found === null)
    throw new CommandError(EX_USAGE, `no such command: ${argv.join(" ")}\n${adviceOn(argv)}`);
  return run(await found.entry.load(), found.rest);
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

function say(text: string): number {
  console.log(text);
  return 0;
}

async function run(command: Command, argv: readonly string[]): Promise<number> {
  const prepared = command.prepare(argv);
  if (prepared.help) return say(command.help);
  const config = loadConfig(process.env, process.stderr.isTTY === true);
  const out = createOutput(prepared.json ?? process.stdout.isTTY !== true, {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  });
  // The clock's timers do not keep the process alive. If only they are left, as with a locked database, Bun would spin
  // until one fires.
  const release = keepAlive();
  try {
    return await prepared.run({ config, settings: SETTINGS, clock: systemClock, out });
  } finally {
    release();
  }
}

/** Prints the error and ends the process, even if parts of the service still run. */
function fail(error: unknown, argv: readonly string[]): never {
  const code = exitCodeOf(error);
  console.error(`postrider: ${printable(error instanceof Error ? error.message : String(error))}`);
  if (code === EX_USAGE && findCommand(argv) !== null)
    console.error(`postrider: see ${[...words(argv), "--help"].join(" ")}`);
  process.exit(code);
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
