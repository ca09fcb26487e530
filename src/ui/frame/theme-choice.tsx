import { chooseTheme, THEMES, type Theme, theme } from "../state/theme.ts";

const NAMES: Readonly<Record<Theme, string>> = { system: "System", light: "Light", dark: "Dark" };

/** Chooses between light and dark. */
export function ThemeChoice() {
  return (
    <select
      class="theme-choice"
      aria-label="Colours"
      title="Colours"
      value={theme.value}
      onChange={(event) => {
        const next = THEMES.find((name) => name === event.currentTarget.value);
        if (next !== undefined) chooseTheme(next);
      }}
    >
      {THEMES.map((name) => (
        <option key={name} value={name}>
          {NAMES[name]}
        </option>
      ))}
    </select>
  );
}
