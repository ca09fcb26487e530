import type { Config, Plan, Setting } from "../config.ts";
import { defineCommand } from "./command.ts";
import { EX_OK } from "./exit.ts";
import { type Column, field } from "./output.ts";

type Row = Readonly<Record<string, unknown>>;

/** Shows the settings in effect. */
export const showSettings = defineCommand({
  name: "config",
  flags: {},
  about: `Shows every setting as it is in effect for this environment, and where it comes from: default, environment or
file. Of a secret it says whether it is set, and nothing else. Where settings are wrong it says all that is wrong with
them and exits 78, as serve would.`,
  example: "postrider config",
  async run(_input, { config: effective, settings, out }) {
    const rows = settings.flatMap((setting) => familyRows(setting, effective) ?? [rowOf(setting, effective)]);
    out.rows(rows, [field("name"), VALUE, field("source")]);
    return EX_OK;
  },
});

/** A default in brackets says what holds where there is no value. Text is as the setting takes it: a flag is 0 or 1. */
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
  // Not even its length: that tells a password from a passphrase.
  if (secret) return { name, set: value !== null, source, default: standard };
  return { name, value, source, default: standard };
}

/** `SMTP_PORT` is `smtpPort` in the configuration. Throws where there is no such thing: each setting has a place. */
function valueIn({ name, type }: Setting, effective: Config): unknown {
  const key = name.toLowerCase().replace(/_(.)/g, (_all, letter: string) => letter.toUpperCase());
  const value = new Map<string, unknown>(Object.entries(effective)).get(key);
  if (value === undefined) throw new Error(`the configuration has no ${key}`);
  if (value instanceof Set) return [...value];
  return type.kind === "url" && typeof value === "string" ? withoutCredentials(value) : value;
}

/** A URL may carry a password, or a token in its query, without being a secret as a whole. */
function withoutCredentials(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol === "file:") return text;
  if (url.username === "" && url.password === "" && url.search === "") return text;
  return `${url.protocol}//${url.username === "" && url.password === "" ? "" : "***@"}${url.host}${url.pathname}${url.search === "" ? "" : "?***"}`;
}

/** The rows of all plans or tiers; null for any other setting. */
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
