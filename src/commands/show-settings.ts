import type { Config } from "../config.ts";
import type { Plan } from "../config/families.ts";
import { configKey, type Setting } from "../config/settings.ts";
import { defineCommand } from "./command.ts";
import { EX_OK } from "./exit.ts";
import { type Column, field } from "./output.ts";

type Row = Readonly<Record<string, unknown>>;

/** Shows the settings in effect. */
export const showSettings = defineCommand({
  name: "config",
  flags: {},
  about: `Shows every setting in effect, and its source: default, environment or file. For a secret it only shows
whether it is set. If settings are wrong, it lists all problems and exits 78, as serve would.`,
  example: "postrider config",
  async run(_input, { config: effective, settings, out }) {
    const rows = settings.flatMap((setting) => familyRows(setting, effective) ?? [rowOf(setting, effective)]);
    out.rows(rows, [field("name"), VALUE, field("source")]);
    return EX_OK;
  },
});

/**
 * Shows the value, or in brackets the default that applies. Text has the form that the setting takes: a flag is 0 or
 * 1.
 */
const VALUE: Column = {
  heading: "value",
  text: ({ set, value, default: standard }) =>
    set === true
      ? "(set)"
      : value === null || value === undefined || (Array.isArray(value) && value.length === 0)
        ? String(standard)
        : field("value").text({ value: typeof value === "boolean" ? Number(value) : value }),
};

function rowOf(setting: Setting, effective: Config): Row {
  const { name, secret, default: standard } = setting;
  const value = valueIn(setting, effective);
  const source = effective.sources.get(name) ?? "default";
  // Not even the length is shown, because it tells a password from a passphrase.
  if (secret) return { name, set: value !== null, source, default: standard };
  return { name, value, source, default: standard };
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

/** Returns the rows of all plans or tiers, or null for any other setting. */
function familyRows({ name, default: standard }: Setting, { plans, tiers, sources }: Config): Row[] | null {
  const prefix = /^([A-Z]+_)<NAME>$/.exec(name)?.[1];
  if (prefix === undefined) return null;
  const family: Readonly<Record<string, Plan | number | null>> = prefix === "PLAN_" ? plans : tiers;
  return Object.entries(family).map(([member, limit]) => {
    const own = `${prefix}${member.toUpperCase()}`;
    return { name: own, value: limitText(limit), source: sources.get(own) ?? "default", default: standard };
  });
}

function limitText(limit: Plan | number | null): string {
  if (limit === null) return "unlimited";
  return typeof limit === "number" ? String(limit) : `${limit.perSecond}/${limit.burst}`;
}
