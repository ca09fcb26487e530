import { parseArgs } from "node:util";
import type { Config, Setting } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { usage } from "./exit.ts";
import type { Output } from "./output.ts";

/** One flag as the help shows it and as it is read. */
export interface Flag {
  type: "string" | "boolean";
  help: string;
  /** What the help calls a string's value. */
  value?: string;
  required?: true;
  /** May be given again. */
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

/** What the command was given, checked against its flags. */
export interface Input<F extends Flags> {
  flags: { readonly [Name in keyof F]: ValueOf<F[Name]> };
  args: readonly string[];
}

/** What every command stands on. */
export interface Context {
  config: Config;
  /** The table of settings. */
  settings: readonly Setting[];
  clock: Clock;
  out: Output;
}

interface Text<F extends Flags> {
  /** The words that call it. */
  name: string;
  /** Names of its arguments; one in brackets may be left out. */
  args?: readonly string[];
  flags: F;
  /** What it does, in sentences. */
  about: string;
  /** Lines of shell that work as they stand. */
  example: string;
  /** Prints no records: `--json` means nothing to it. */
  plain?: true;
}

/** A command with its own flags: it takes arguments, gives an exit code, and throws what becomes one. */
export interface Command {
  readonly plain: boolean;
  readonly help: string;
  /** Reads the arguments. Throws `CommandError` (usage) for unknown flags, missing ones and arguments too many. */
  prepare(argv: readonly string[]): Prepared;
}

export interface Prepared {
  help: boolean;
  /** Null: as the terminal decides. */
  json: boolean | null;
  run(context: Context): Promise<number>;
}

const HELP: Flag = { type: "boolean", help: "show this text" };
const JSON_FLAG: Flag = {
  type: "boolean",
  help: "JSON, an object a line, as where standard output is no terminal; --no-json: text",
};

/** A command from its text and what it does. */
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
      // The one cast: what parseArgs gives has been checked against the flags that the type is made from.
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
    // Its first sentence says what is wrong; the rest is advice about `--`.
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
