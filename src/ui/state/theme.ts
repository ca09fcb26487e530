import { signal } from "@preact/signals";
import { readChoice, storeChoice } from "./storage.ts";

/** `system` follows the browser's own setting. */
export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The chosen colours. */
export const theme = signal<Theme>("system");

/** Returns the choice that this browser keeps. */
export function keptTheme(): Theme {
  return THEMES.find((name) => name === readChoice("theme")) ?? "system";
}

/** Takes up the choice that this browser keeps. */
export function startTheme(): void {
  apply(keptTheme());
}

/** Chooses the colours. */
export function chooseTheme(next: Theme): void {
  storeChoice("theme", next);
  apply(next);
}

function apply(next: Theme): void {
  theme.value = next;
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}
