/**
 * Starts the app. If the server has drawn the page, the browser shows it first, because running the app would delay that. Imports
 * nothing: it must be small, and the first frame comes before all else.
 */

/** Calls the function after the browser has drawn a frame. */
function afterFrame(run: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = run;
  const frame = () => port2.postMessage(null);
  // A window that is not seen draws no frame.
  if (document.visibilityState === "hidden") frame();
  else requestAnimationFrame(frame);
}

/** Loads the app, which the page has told the browser to fetch. */
function start(): void {
  const app = document.querySelector<HTMLLinkElement>("link[rel=modulepreload]");
  if (app !== null) void import(app.href);
}

if (document.getElementById("app")?.firstChild) afterFrame(start);
else start();
