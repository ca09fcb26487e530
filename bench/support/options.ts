const ROUNDS = 3;
const DOMAINS = 50;

function option(name: string): string | null {
  const start = `--${name}=`;
  return process.argv.find((arg) => arg.startsWith(start))?.slice(start.length) ?? null;
}

/** The kinds that `--only=TEXT` leaves: those whose name has the text in it. */
export function chosen<Kind extends readonly [string, unknown]>(kinds: readonly Kind[]): readonly Kind[] {
  return kinds.filter(([name]) => name.includes(option("only") ?? ""));
}

/** How often each kind is measured, in turns: `--rounds=N`. */
export function rounds(): number {
  return Number(option("rounds") ?? ROUNDS);
}

/** `--profile=FOLDER`: where the service leaves CPU profiles; null without. */
export function profileFolder(): string | null {
  return option("profile");
}

/** How many domains the recipients are spread over: `--domains=N`. */
export function domains(): number {
  return Number(option("domains") ?? DOMAINS);
}

/** `--keep=FOLDER`: where the bench's databases stay, and are found again; null without. */
export function keptFolder(): string | null {
  return option("keep");
}
