import type { Config, SettingSource } from "../config.ts";
import type { Plan } from "./families.ts";
import { configKey, type Setting } from "./settings.ts";

/** A setting in effect, as it may be shown. */
export interface ShownSetting {
  name: string;
  /** Null if it is not set and has no default, and for every secret. */
  value: unknown;
  source: SettingSource | "default";
  secret: boolean;
  /** True if there is a value. A secret shows only this. */
  set: boolean;
  /** The default as the documentation has it. */
  default: string;
  help: string;
}

/** Returns every setting in effect, without the values of secrets. */
export function shownSettings(settings: readonly Setting[], effective: Config): ShownSetting[] {
  return settings.flatMap((setting) => familyMembers(setting, effective) ?? [shown(setting, effective)]);
}

function shown(setting: Setting, effective: Config): ShownSetting {
  const { name, secret = false, default: standard, help } = setting;
  const value = valueIn(setting, effective);
  const source = effective.sources.get(name) ?? "default";
  // Not even the length of a secret is shown, because it tells a password from a passphrase.
  return {
    name,
    value: secret ? null : value,
    source,
    secret,
    set: settingText(value) !== null,
    default: standard,
    help,
  };
}

/** @throws Error if the configuration has no value for the setting, which every setting must have */
function valueIn({ name, kind }: Setting, effective: Config): unknown {
  const key = configKey(name);
  const value = new Map<string, unknown>(Object.entries(effective)).get(key);
  if (value === undefined) throw new Error(`the configuration has no ${key}`);
  if (value instanceof Set) return [...value];
  return kind.mayHoldCredentials && typeof value === "string" ? withoutCredentials(value) : value;
}

/** Hides passwords and query tokens in a URL, which is otherwise not secret. */
function withoutCredentials(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol === "file:") return text;
  if (url.username === "" && url.password === "" && url.search === "") return text;
  return `${url.protocol}//${url.username === "" && url.password === "" ? "" : "***@"}${url.host}${url.pathname}${url.search === "" ? "" : "?***"}`;
}

/** Returns all plans or tiers, or null for any other setting. */
function familyMembers(
  { name, default: standard, help }: Setting,
  { plans, tiers, sources }: Config,
): ShownSetting[] | null {
  const prefix = /^([A-Z]+_)<NAME>$/.exec(name)?.[1];
  if (prefix === undefined) return null;
  const family: Readonly<Record<string, Plan | number | null>> = prefix === "PLAN_" ? plans : tiers;
  return Object.entries(family).map(([member, limit]) => {
    const own = `${prefix}${member.toUpperCase()}`;
    const source = sources.get(own) ?? "default";
    return { name: own, value: limitText(limit), source, secret: false, set: true, default: standard, help };
  });
}

function limitText(limit: Plan | number | null): string {
  if (limit === null) return "unlimited";
  return typeof limit === "number" ? String(limit) : `${limit.perSecond}/${limit.burst}`;
}

/** Returns a value in the form that its setting takes: a flag is 0 or 1. Null: there is none. */
export function settingText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(settingText).join(",");
  if (typeof value === "object") return JSON.stringify(value);
  return String(typeof value === "boolean" ? Number(value) : value);
}
