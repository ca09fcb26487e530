import { setBounded } from "../../core/collections.ts";
import type { MailauthResolver } from "./resolver.ts";

/** Maximum number of checks remembered. Beyond them the one that was unused for longest is forgotten. */
export const MAX_REMEMBERED = 1000;
/** Maximum characters of a key. A longer one comes from the mail and is hardly seen twice. */
export const MAX_KEY_CHARS = 2048;
/**
 * Maximum number of lookups in a check, and of characters in all their answers. They bound the memory of an entry.
 */
export const MAX_REMEMBERED_LOOKUPS = 20;
export const MAX_ANSWER_CHARS = 4096;

/** Answers that say "there is none" for their time to live. All other errors say "ask again". */
const FINAL_CODES: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA"]);

interface Lookup {
  name: string;
  type: string;
  /** The answer as text. */
  answer: string;
}

interface Remembered {
  lookups: Lookup[];
  found: unknown;
}

/**
 * Remembers the outcome of checks for the next mail with the same key. An outcome follows from the key and from the answers of name
 * servers. All its lookups are therefore made again, at once: if each answer is the same, so is the outcome. Answers come from the
 * resolver's cache while they live.
 */
export class CheckMemory {
  readonly #known = new Map<string, Remembered>();

  /**
   * Returns the outcome of a check.
   * @param key everything that the outcome depends on, except the answers of name servers
   * @param check makes the outcome with the resolver that it is given and nothing else; the outcome must not be changed
   */
  async recall<Found>(
    key: string,
    resolver: MailauthResolver,
    check: (resolver: MailauthResolver) => Promise<Found>,
  ): Promise<Found> {
    if (key.length > MAX_KEY_CHARS) return check(resolver);
    const known = this.#known.get(key);
    if (known !== undefined && (await isSaidStill(known.lookups, resolver))) {
      setBounded(this.#known, key, known, MAX_REMEMBERED);
      // The key begins with the kind of check, so the outcome has the type of this one.
      return known.found as Found;
    }
    const noted = new NotedLookups(resolver);
    const found = await check((name, type) => noted.ask(name, type));
    if (noted.isFinal()) setBounded(this.#known, key, { lookups: noted.lookups, found }, MAX_REMEMBERED);
    else this.#known.delete(key);
    return found;
  }

  get size(): number {
    return this.#known.size;
  }
}

async function isSaidStill(lookups: readonly Lookup[], resolver: MailauthResolver): Promise<boolean> {
  const answers = await Promise.all(lookups.map(({ name, type }) => answerText(resolver(name, type))));
  return lookups.every(({ answer }, at) => answers[at] === answer);
}

/** A resolver that notes its lookups. */
class NotedLookups {
  readonly lookups: Lookup[] = [];
  readonly #resolver: MailauthResolver;
  #open = 0;
  #chars = 0;
  #failed = false;

  constructor(resolver: MailauthResolver) {
    this.#resolver = resolver;
  }

  /** Returns whether each lookup has a final answer, and all together are small enough to remember. */
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

/** Returns an answer as text that no other answer has; null if it is not final. */
async function answerText(asked: Promise<string[]>): Promise<string | null> {
  try {
    return JSON.stringify(await asked);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return FINAL_CODES.has(code) ? String(code) : null;
  }
}
