import "./style.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { startTicking } from "./components/time.tsx";
import { startKeyboard } from "./state/keyboard.ts";
import { startRouter } from "./state/router.ts";
import { startSession } from "./state/session.ts";
import { startTheme } from "./state/theme.ts";

const root = document.getElementById("app");
if (root !== null) {
  startTheme();
  startRouter();
  startKeyboard();
  startTicking();
  void startSession();
  render(<App />, root);
}
