import { parseArgs } from "node:util";
import type { Config } from "../../config.ts";
import type { Setting } from "../../config/settings.ts";
import type { Clock } from "../../core/time/clock.ts";
import { usage } from "./exit.ts";
import type { Output } from "./output.ts";

/** One flag, as it is parsed and shown in the help. */
export interface Flag {
  type: "string" | "boolean";
  help: string;
  /** Name of a string's value in the help. */
  value?: string;
  required?: true;
  /** May be given several times. */
  multiple?: true;
}

export type Flags = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F extends { type: "boolean" }
  ? boolean
  : F extends { multiple: true }
    ? readonly string[]
    : F extends { required: true }
      ? string
      : string | undefined;

/** The arguments of a command, checked against its flags. */
export interface Input<F extends Flags> {
  flags: { readonly [Name in keyof F]: ValueOf<F[Name]> };
  args: readonly string[];
}

/** Dependencies of every command. */
export interface Context {
  config: Config;
  settings: readonly Setting[];
  clock: Clock;
  out: Output;
}

interface Text<F extends Flags> {
  /** The words that call the command. */
  name: string;
  /** Names of its arguments. A name in brackets is optional. */
  args?: readonly string[];
  flags: F;
  /** Description in sentences. */
  about: string;
  /** A shell example that works as it is. */
  example: string;
  /** The command prints no records, so `--json` has no effect. */
  plain?: true;
}

/** A command with its flags. It takes arguments, and returns an exit code or throws an error that has one. */
export interface Command {
  readonly plain: boolean;
  readonly help: string;
  /**
   * Parses the arguments. Throws `CommandError` (usage) if a flag is unknown or missing, or if there are too many
   * arguments.
   */
  prepare(argv: readonly string[]): Prepared;
}

export interface Prepared {
  help: boolean;
  /** Null: JSON unless standard output is a terminal. */
  json: boolean | null;
  run(context: Context): Promise<number>;
}

const HELP: Flag = { type: "boolean", help: "show this help" };
const JSON_FLAG: Flag = {
  type: "boolean",
  help: "print JSON, one object per line (default unless standard output is a terminal); --no-json: text",
};

/** Returns a command from its descriptions and its function. */
export function defineCommand<const F extends Flags>(
  text: Text<F> & { run(input: Input<F>, context: Context): Promise<number> },
): Command {
  const flags: Flags = { ...text.flags, ...(text.plain ? {} : { json: JSON_FLAG }), help: HELP };
  return {
    plain: text.plain === true,
    help: helpOf(text, flags),
    prepare(argv) {
      const { values, positionals } = parsed(argv, flags);
      const json = typeof values.json === "boolean" ? values.json : null;
      if (values.help === true)
        return { help: true, json, run: () => Promise.reject(usage("help was asked for")) };
      requireFlags(flags, values);
      requireArgs(text.args ?? [], positionals);
      // The only cast: parseArgs returns values that match the flags, from which the type is made.
      const input = { flags: withDefaults(flags, values), args: positionals } as unknown as Input<F>;
      return { help: false, json, run: (context) => text.run(input, context) };
    },
  };
}

type Values = Readonly<Record<string, unknown>>;

function parsed(argv: readonly string[], flags: Flags): { values: Values; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { type, multiple }]) => [
      name,
      { type, ...(multiple ? { multiple } : {}), ...(name === "help" ? { short: "h" } : {}) },
    ]),
  );
  try {
    return parseArgs({ args: [...argv], options, strict: true, allowPositionals: true, allowNegative: true });
  } catch (error) {
    // The first sentence says what is wrong. The rest is advice about `--`.
    const said = error instanceof Error ? error.message : String(error);
    throw usage(said.split(/\.(?:\s|$)/)[0] ?? said);
  }
}

function requireFlags(flags: Flags, values: Values): void {
  const missing = Object.entries(flags).filter(
    ([name, { required }]) => required && values[name] === undefined,
  );
  if (missing.length > 0)
    throw usage(`missing: ${missing.map(([name, flag]) => shownFlag(name, flag)).join(", ")}`);
}

function requireArgs(names: readonly string[], given: readonly string[]): void {
  const missing = names.slice(given.length).filter((name) => !name.startsWith("["));
  if (missing.length > 0) throw usage(`missing: ${missing.join(", ")}`);
  if (given.length > names.length) throw usage(`too many arguments: ${given.slice(names.length).join(" ")}`);
}

function withDefaults(flags: Flags, values: Values): Values {
  const absent = ({ type, multiple }: Flag) => (type === "boolean" ? false : multiple ? [] : undefined);
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, values[name] ?? absent(flag)]),
  );
}

function shownFlag(name: string, { value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function helpOf({ name, args = [], about, example }: Text<Flags>, flags: Flags): string {
  const shown = Object.entries(flags).map(([flag, spec]) => ({ text: shownFlag(flag, spec), spec }));
  const required = shown.filter(({ spec }) => spec.required).map(({ text }) => text);
  const words = ["usage: postrider", name, ...args, ...required, "[flags]"];
  const width = Math.max(...shown.map(({ text }) => text.length));
  return [
    words.join(" "),
    "",
    about,
    "",
    ...shown.map(({ text, spec }) => `  ${text.padEnd(width)}  ${spec.help}`),
    "",
    "example:",
    ...example.split("\n").map((line) => `  ${line}`),
  ].join("\n");
}
