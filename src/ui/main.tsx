import "./style.css";
import { render } from "preact";
import { App } from "./frame/app.tsx";
import { startTicking } from "./components/time.tsx";
import { startKeyboard } from "./state/keyboard.ts";
import { startRouter } from "./state/router.ts";
import { startSession } from "./state/session.ts";
import { startTheme } from "./state/theme.ts";

async function start(root: HTMLElement): Promise<void> {
  startTheme();
  startRouter();
  startKeyboard();
  startTicking();
  const session = startSession();
  // The drawing of the server stays until the app has as much to show.
  if (root.firstChild !== null) await session;
  render(<App />, root);
  // Scripts that drive the page wait for it, because what they do before is lost.
  root.dataset.app = "running";
}

const root = document.getElementById("app");
if (root !== null) void start(root);
