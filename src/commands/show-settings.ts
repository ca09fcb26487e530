import { type ShownSetting, settingText, shownSettings } from "../config/shown.ts";
import { defineCommand } from "./support/command.ts";
import { EX_OK } from "./support/exit.ts";
import { type Column, field } from "./support/output.ts";

type Row = Readonly<Record<string, unknown>>;

/** Shows the settings in effect. */
export const showSettings = defineCommand({
  name: "config",
  flags: {},
  about: `Shows every setting in effect, and its source: default, environment or file. For a secret it only shows
whether it is set. If settings are wrong, it lists all problems and exits 78, as serve would.`,
  example: "postrider config",
  async run(_input, { config: effective, settings, out }) {
    const rows = shownSettings(settings, effective).map(rowOf);
    out.rows(rows, [field("name"), VALUE, field("source")]);
    return EX_OK;
  },
});

/** Shows the value, or in brackets the default that applies. */
const VALUE: Column = {
  heading: "value",
  text: ({ set, value, default: standard }) =>
    set === true ? "(set)" : (settingText(value) ?? String(standard)),
};

function rowOf(setting: ShownSetting): Row {
  const { name, value, source, secret, set, default: standard } = setting;
  return secret ? { name, set, source, default: standard } : { name, value, source, default: standard };
}
