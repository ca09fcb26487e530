import { options, render } from "preact";
import { setKnownAnswers } from "../api/client.ts";
import { forgetAll, snapshots } from "../api/resource.ts";
import { App } from "../frame/app.tsx";
import { origin, place } from "../state/router.ts";
import { leaveSession, takeUp } from "../state/session.ts";
import type { StartData } from "../state/start-data.ts";
import { readChoicesOf } from "../state/storage.ts";
import { keptTheme, theme } from "../state/theme.ts";
import { createCanvas } from "./document.ts";
import type { Draw, Drawing, Sheet } from "./index.js";

/** Times that the page is drawn again, because an answer has changed it. */
const MAX_ROUNDS = 8;
/** Steps of a read whose answers are all known: each awaits something that is there. */
const STEPS = 64;

let redraw: (() => void) | null = null;
let endEffects = () => {};
/** Signals hold the state of one page, so pages are drawn one after another. */
let last: Promise<unknown> | null = null;

/** Draws the page for a browser, which then takes it over (`main.tsx`). */
export const draw: Draw = (sheet) => {
  const drawing = last === null ? drawNow(sheet) : last.then(() => drawNow(sheet));
  last = drawing.catch(() => {});
  return drawing;
};

async function steps(): Promise<void> {
  for (let step = 0; step < STEPS; step++) await null;
}

async function drawNow(sheet: Sheet): Promise<Drawing> {
  options.debounceRendering = (run) => {
    redraw = run;
  };
  // Effects are for the browser alone.
  options.requestAnimationFrame = (run) => {
    endEffects = run;
  };
  const canvas = createCanvas();
  try {
    place.value = { path: sheet.path, search: sheet.search };
    origin.value = sheet.origin;
    readChoicesOf(sheet.cookie);
    theme.value = keptTheme();
    setKnownAnswers(sheet.answers);
    // It may wait for a project that is not known here, for ever. Then there is nothing to draw.
    takeUp(sheet as StartData).catch(() => {});
    await steps();
    render(<App />, canvas.element);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      await steps();
      if (redraw === null) break;
      const run: () => void = redraw;
      redraw = null;
      run();
    }
    return { html: canvas.html(), values: snapshots() };
  } finally {
    leave(canvas.element);
  }
}

/** Forgets the page, whatever its fault was: nothing of it may get into the next one. */
function leave(element: Element): void {
  try {
    render(null, element);
    endEffects();
  } finally {
    redraw = null;
    setKnownAnswers(null);
    readChoicesOf("");
    forgetAll();
    leaveSession();
  }
}
