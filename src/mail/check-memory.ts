import { setNewest } from "../core/newest.ts";
import type { MailauthResolver } from "./auth-resolver.ts";

/** Checks remembered; the longest unused goes first. */
export const MAX_REMEMBERED = 1000;
/** Characters of what is checked; more comes from the mail and is hardly seen twice. */
export const MAX_KEY_CHARS = 2048;
/** Lookups of a check, and characters of their answers together: entries times these bound the memory. */
export const MAX_REMEMBERED_LOOKUPS = 20;
export const MAX_ANSWER_CHARS = 4096;

/** Answers that say "there is none" and stay so for their time to live; all others say "ask again". */
const FINAL_CODES: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA"]);

interface Lookup {
  name: string;
  type: string;
  /** What was answered, as text. */
  answer: string;
}

interface Remembered {
  lookups: Lookup[];
  found: unknown;
}

/**
 * What checks have found, for the next mail of which the same is asked. A check's outcome follows from what is checked
 * and from what name servers say, so they are asked again, all at once, for all that it was found by: where each says
 * the same, the outcome is the same. Their answers come from the resolver's cache for as long as they live.
 */
export class CheckMemory {
  readonly #known = new Map<string, Remembered>();

  /**
   * The outcome of a check.
   * @param key all that it depends on, but for what name servers say
   * @param check makes it, by the resolver that it is given and nothing else; what it resolves with must not be changed
   */
  async recall<Found>(
    key: string,
    resolver: MailauthResolver,
    check: (resolver: MailauthResolver) => Promise<Found>,
  ): Promise<Found> {
    if (key.length > MAX_KEY_CHARS) return check(resolver);
    const known = this.#known.get(key);
    if (known !== undefined && (await isSaidStill(known.lookups, resolver))) {
      setNewest(this.#known, key, known, MAX_REMEMBERED);
      // It was found by a check of the same key, which begins with its kind.
      return known.found as Found;
    }
    const noted = new NotedLookups(resolver);
    const found = await check((name, type) => noted.ask(name, type));
    if (noted.isFinal()) setNewest(this.#known, key, { lookups: noted.lookups, found }, MAX_REMEMBERED);
    else this.#known.delete(key);
    return found;
  }

  /** Checks remembered. */
  get size(): number {
    return this.#known.size;
  }
}

async function isSaidStill(lookups: readonly Lookup[], resolver: MailauthResolver): Promise<boolean> {
  const answers = await Promise.all(lookups.map(({ name, type }) => answerText(resolver(name, type))));
  return lookups.every(({ answer }, at) => answers[at] === answer);
}

/** The resolver given, and what was asked of it. */
class NotedLookups {
  readonly lookups: Lookup[] = [];
  readonly #resolver: MailauthResolver;
  #open = 0;
  #chars = 0;
  #failed = false;

  constructor(resolver: MailauthResolver) {
    this.#resolver = resolver;
  }

  /** Whether all that was asked is known, may be asked again, and is little enough to be remembered. */
  isFinal(): boolean {
    return (
      this.#open === 0 &&
      !this.#failed &&
      this.lookups.length <= MAX_REMEMBERED_LOOKUPS &&
      this.#chars <= MAX_ANSWER_CHARS
    );
  }

  async ask(name: string, type: string): Promise<string[]> {
    const asked = this.#resolver(name, type);
    this.#open++;
    const answer = await answerText(asked);
    this.#open--;
    if (answer === null) this.#failed = true;
    else if (!this.lookups.some((lookup) => lookup.name === name && lookup.type === type)) {
      this.#chars += name.length + answer.length;
      this.lookups.push({ name, type, answer });
    }
    return asked;
  }
}

/** An answer as text that only the same answer has; null for one that is none. */
async function answerText(asked: Promise<string[]>): Promise<string | null> {
  try {
    return JSON.stringify(await asked);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return FINAL_CODES.has(code) ? String(code) : null;
  }
}
