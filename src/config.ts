import { readFileSync } from "node:fs";
import { contradictions } from "./config/contradictions.ts";
import { type Family, type Plan, readPlans, readTiers } from "./config/families.ts";
import { quotasOf } from "./config/quotas.ts";
import { configKey, type Given, type Setting, SETTINGS, type SettingValues } from "./config/settings.ts";
import { type UnreadVariable, unreadVariables } from "./config/unread-variables.ts";
import { SettingsError } from "./core/errors.ts";
import type { Quotas } from "./core/quotas.ts";

/** The configuration of a process: the value of each setting, by its name in camel case. */
export interface Config extends SettingValues {
  /** Request rates by plan; null is unlimited. */
  plans: Family<Plan>;
  /** Recipients a UTC day by trust tier; null is unlimited. */
  tiers: Family<number>;
  /** The most that each plan allows. */
  quotas: Quotas;
  /** Secrets given twice, by name. The variable counts; the file that `NAME_FILE` names is not read. */
  givenTwice: readonly string[];
  /** Variables that no setting reads, although a setting has almost the same name. */
  unread: readonly UnreadVariable[];
  /** The source of each setting that is not left to its default; plans and tiers by their full names. */
  sources: ReadonlyMap<string, SettingSource>;
}

export type SettingSource = "environment" | "file";

/** Thrown with every wrong setting, so that one start reports all of them. */
export class ConfigError extends SettingsError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`wrong settings:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Makes the process and its threads read and show times without a zone in UTC. The libraries of templates use the process's zone,
 * so the same template would show another day on another machine.
 */
export function useUtc(): void {
  process.env.TZ = "UTC";
}

/**
 * Reads the settings from the environment.
 * @param terminal whether a person reads the output, which decides the default LOG_FORMAT
 * @throws ConfigError with all problems at once
 */
export function loadConfig(env: Env, terminal = false): Config {
  const problems: string[] = [];
  const given = givenIn(readTexts(env, problems), terminal);
  const plans = readPlans(env, problems);
  const tiers = readTiers(env, problems);
  for (const [name, family] of [
    ["DEFAULT_PLAN", plans],
    ["DEFAULT_TRUST_TIER", tiers],
  ] as const)
    if (!Object.hasOwn(family, given.text(name) ?? ""))
      problems.push(`${name}=${given.text(name)} must be one of ${Object.keys(family).join(", ")}`);
  problems.push(...contradictions(env, given.text, textOf("DELIVERY", given), problems));
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    ...valuesOf(given),
    plans,
    tiers,
    quotas: quotasOf(given),
    givenTwice: givenTwice(env),
    unread: unreadVariables(env, SETTINGS),
    sources: sourcesOf(env),
  };
}

/**
 * Reads the values in the environment and in the files that `NAME_FILE` names, and reports what is wrong with them.
 */
function readTexts(env: Env, problems: string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const setting of SETTINGS) {
    const text = readText(env, setting, problems);
    if (text === undefined) continue;
    const fault = setting.kind.fault(text);
    if (fault === null) texts.set(setting.name, text);
    else problems.push(`${setting.name}${setting.secret ? "" : `=${JSON.stringify(text)}`} ${fault}`);
  }
  return texts;
}

function readText(env: Env, setting: Setting, problems: string[]): string | undefined {
  const direct = variable(env, setting.name);
  if (direct !== undefined) return direct;
  const file = setting.secret ? variable(env, `${setting.name}_FILE`) : undefined;
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    problems.push(`${setting.name}_FILE=${JSON.stringify(file)} cannot be read`);
    return undefined;
  }
}

/** Returns a variable's text. An empty one counts as unset, because that is how a compose file leaves a setting out. */
function variable(env: Env, name: string): string | undefined {
  return env[name] === "" ? undefined : env[name];
}

function givenIn(texts: ReadonlyMap<string, string>, terminal: boolean): Given {
  const defaults = new Map(SETTINGS.map((setting) => [setting.name, setting.default]));
  return {
    terminal,
    isGiven: (name) => texts.has(name),
    text(name) {
      const standard = defaults.get(name) ?? "(none)";
      return texts.get(name) ?? (standard.startsWith("(") ? null : standard);
    },
  };
}

function textOf(name: string, given: Given): string {
  const setting = SETTINGS.find((one) => one.name === name);
  return given.text(name) ?? setting?.fallback(given) ?? "";
}

/** Reads each setting's value; null if it is not given and has no default. */
function valuesOf(given: Given): SettingValues {
  const entries = SETTINGS.filter(({ isFamily }) => !isFamily).map(({ name, kind, fallback }) => {
    const text = given.text(name) ?? fallback(given);
    return [configKey(name), text === null ? null : kind.read(text)];
  });
  // The table gives both the names and the types of the values, so the two cannot differ.
  return Object.fromEntries(entries) as SettingValues;
}

function givenTwice(env: Env): string[] {
  return SETTINGS.filter(
    ({ name, secret }) =>
      secret && variable(env, name) !== undefined && variable(env, `${name}_FILE`) !== undefined,
  ).map(({ name }) => name);
}

function sourcesOf(env: Env): Map<string, SettingSource> {
  const sources = new Map<string, SettingSource>();
  for (const { name, secret } of SETTINGS) {
    if (variable(env, name) !== undefined) sources.set(name, "environment");
    else if (secret && variable(env, `${name}_FILE`) !== undefined) sources.set(name, "file");
  }
  for (const name of Object.keys(env))
    if (/^(?:PLAN|TIER)_/.test(name) && variable(env, name) !== undefined) sources.set(name, "environment");
  return sources;
}
