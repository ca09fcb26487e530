import { nearestName } from "../core/typing-errors.ts";
import type { Setting } from "./settings.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A variable that no setting reads, and the setting that its name resembles. */
export interface UnreadVariable {
  name: string;
  setting: string;
}

/** Characters of a name for each typing error that it may hold. Shorter names would resemble variables of other programs. */
const CHARACTERS_PER_ERROR = 6;
/** Longer names of variables are not compared, because comparing takes time by the square of the length. */
const MAX_NAME_CHARS = 64;

/** Lists the variables that are probably settings with a wrong name, such as `SMTP_RELAY` for `SMTP_RELAY_URL`. */
export function unreadVariables(env: Env, settings: readonly Setting[]): UnreadVariable[] {
  const names = settings.filter(({ isFamily }) => !isFamily).map(({ name }) => name);
  const files = settings.filter(({ secret }) => secret).map(({ name }) => `${name}_FILE`);
  const read = new Set([...names, ...files]);
  return Object.keys(env).flatMap((name) => {
    if (env[name] === "" || name.length > MAX_NAME_CHARS || read.has(name) || /^(?:PLAN|TIER)_/.test(name))
      return [];
    const setting = nearest(name.toUpperCase(), [...read]);
    return setting === null ? [] : [{ name, setting }];
  });
}

/** Returns the setting that a name was probably meant to be; null if none is near. */
function nearest(name: string, settings: readonly string[]): string | null {
  return (
    nearestName(name, settings, CHARACTERS_PER_ERROR) ??
    settings.find((setting) => isPartOf(name, setting)) ??
    null
  );
}

/** Returns true if a name has all of a setting's words but the last ones, or a `_FILE` that the setting does not take. */
function isPartOf(name: string, setting: string): boolean {
  return (name.includes("_") && setting.startsWith(`${name}_`)) || name === `${setting}_FILE`;
}
