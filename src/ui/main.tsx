import "./style.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { after } from "./clock.ts";
import { startTicking } from "./components/time.tsx";
import { startKeyboard } from "./state/keyboard.ts";
import { startRouter } from "./state/router.ts";
import { startSession } from "./state/session.ts";
import { startTheme } from "./state/theme.ts";

/** Longest wait for the first frame. A window that is not seen draws none. */
const MAX_WAIT_MS = 150;

/** Calls the function after the browser has drawn a frame. */
function afterPaint(run: () => void): void {
  const { port1, port2 } = new MessageChannel();
  const done = () => {
    port1.close();
    cancel();
    run();
  };
  const cancel = after(MAX_WAIT_MS, done);
  port1.onmessage = done;
  requestAnimationFrame(() => port2.postMessage(null));
}

async function start(root: HTMLElement): Promise<void> {
  startTheme();
  startRouter();
  startKeyboard();
  startTicking();
  const session = startSession();
  // The page that the server has drawn stays until this one is as complete.
  if (root.firstChild !== null) await session;
  render(<App />, root);
}

const root = document.getElementById("app");
if (root?.firstChild) afterPaint(() => void start(root));
else if (root) void start(root);
