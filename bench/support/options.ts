const ROUNDS = 3;
const DOMAINS = 50;

/** All values of `--name=…`, which may be given several times. */
function options(name: string): string[] {
  const start = `--${name}=`;
  return process.argv.filter((arg) => arg.startsWith(start)).map((arg) => arg.slice(start.length));
}

function option(name: string): string | null {
  return options(name)[0] ?? null;
}

/** The whole number in `--name=…`, or the fallback. Throws for what is none from 1 on. */
export function numberOption(name: string, fallback: number): number {
  const text = option(name);
  if (text === null) return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}=${text} is no whole number from 1 on`);
  return value;
}

/** Whether `--name` was given. */
export function flag(name: string): boolean {
  return process.argv.includes(`--${name}`);
}

/** The kinds that `--only=TEXT`, once or several times, leaves: those whose name has one of the texts in it. */
export function chosen<Kind extends readonly [string, unknown]>(kinds: readonly Kind[]): readonly Kind[] {
  const texts = options("only");
  return texts.length === 0 ? kinds : kinds.filter(([name]) => texts.some((text) => name.includes(text)));
}

/** How often each kind is measured, in turns: `--rounds=N`. */
export function rounds(fallback = ROUNDS): number {
  return numberOption("rounds", fallback);
}

/** `--profile=FOLDER`: where the service leaves CPU profiles; null without. */
export function profileFolder(): string | null {
  return option("profile");
}

/** How many domains the recipients are spread over: `--domains=N`. */
export function domains(): number {
  return numberOption("domains", DOMAINS);
}

/** `--keep=FOLDER`: where the bench's databases stay, and are found again; null without. */
export function keptFolder(): string | null {
  return option("keep");
}

/** `--json=FILE`: where the bench leaves its figures as numbers; null without. */
export function figuresFile(): string | null {
  return option("json");
}

/** `--slow-disk=MS`: how much longer each fsync of the service takes, by strace; null without. */
export function slowDiskMs(): number | null {
  return option("slow-disk") === null ? null : numberOption("slow-disk", 0);
}
