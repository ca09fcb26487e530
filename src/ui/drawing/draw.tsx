import { options, type VNode } from "preact";
import { renderToStringAsync } from "preact-render-to-string";
import { NotKnown, setKnownAnswers } from "../api/client.ts";
import { snapshots } from "../api/resource.ts";
import { App } from "../frame/app.tsx";
import { origin, place } from "../state/router.ts";
import { takeUp } from "../state/session.ts";
import type { StartData } from "../state/start-data.ts";
import { readChoicesOf } from "../state/storage.ts";
import { keptTheme, theme } from "../state/theme.ts";
import type { Draw } from "./index.js";

/** Draws the page for a browser, which then takes it over (`main.tsx`). */
export const draw: Draw = async (sheet) => {
  options.vnode = leaveOutStyle;
  place.value = { path: sheet.path, search: sheet.search };
  origin.value = sheet.origin;
  readChoicesOf(sheet.cookie);
  theme.value = keptTheme();
  setKnownAnswers(sheet.answers);
  try {
    await takeUp(sheet as StartData);
  } catch (thrown) {
    // The chosen project is not known here, so there is nothing to draw.
    if (thrown instanceof NotKnown) return { html: "", values: {} };
    throw thrown;
  }
  const html = await renderToStringAsync(<App />);
  return { html, values: snapshots() };
};

/** The page's policy allows no style attributes. In the browser, styles go through the DOM. */
function leaveOutStyle(vnode: VNode): void {
  if (typeof vnode.type === "string") delete (vnode.props as { style?: unknown }).style;
}
