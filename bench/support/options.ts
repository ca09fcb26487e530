import { DKIM_CHOICES, type DkimChoice } from "../../src/core/domains/dkim-keys.ts";

const ROUNDS = 3;
const DOMAINS = 50;

/** Returns all values of `--name=…`, which may be given several times. */
function options(name: string): string[] {
  const start = `--${name}=`;
  return process.argv.filter((arg) => arg.startsWith(start)).map((arg) => arg.slice(start.length));
}

function option(name: string): string | null {
  return options(name)[0] ?? null;
}

/** Returns the whole number in `--name=…`, or the fallback. Throws if it is not a number from 1 on. */
export function numberOption(name: string, fallback: number): number {
  const text = option(name);
  if (text === null) return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}=${text} is no whole number from 1 on`);
  return value;
}

/** Returns whether `--name` was given. */
export function flag(name: string): boolean {
  return process.argv.includes(`--${name}`);
}

/** Returns the kinds whose name contains a value of `--only=TEXT`, which may be given several times. */
export function chosen<Kind extends readonly [string, unknown]>(kinds: readonly Kind[]): readonly Kind[] {
  const texts = options("only");
  return texts.length === 0 ? kinds : kinds.filter(([name]) => texts.some((text) => name.includes(text)));
}

/** Returns how often each kind is measured, in turns: `--rounds=N`. */
export function rounds(fallback = ROUNDS): number {
  return numberOption("rounds", fallback);
}

/** Returns the folder for the service's CPU profiles, `--profile=FOLDER`; null if not given. */
export function profileFolder(): string | null {
  return option("profile");
}

/** Returns the number of recipient domains: `--domains=N`. */
export function domains(): number {
  return numberOption("domains", DOMAINS);
}

/** Returns the DKIM keys to measure with, `--dkim=KEYS`, which may be given several times. */
export function dkimChoices(fallback: readonly DkimChoice[]): readonly DkimChoice[] {
  const given = options("dkim").map((text) => {
    const choice = DKIM_CHOICES.find((each) => each === text);
    if (choice === undefined) throw new Error(`--dkim=${text} is none of ${DKIM_CHOICES.join(", ")}`);
    return choice;
  });
  return given.length === 0 ? fallback : given;
}

/** Returns the folder in which the bench keeps its databases, `--keep=FOLDER`; null if not given. */
export function keptFolder(): string | null {
  return option("keep");
}

/** Returns the file for the figures as numbers, `--json=FILE`; null if not given. */
export function figuresFile(): string | null {
  return option("json");
}

/** Returns how much longer each fsync of the service takes by strace, `--slow-disk=MS`; null if not given. */
export function slowDiskMs(): number | null {
  return option("slow-disk") === null ? null : numberOption("slow-disk", 0);
}
