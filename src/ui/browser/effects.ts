/** Effects of a browser. If the server draws a page, they do nothing. */
import * as hooks from "preact/hooks";

const inBrowser = typeof document !== "undefined";

/** Runs an effect after the page has been painted. */
export const useEffect: typeof hooks.useEffect = inBrowser ? hooks.useEffect : () => {};

/** Runs an effect before the page is painted. */
export const useLayoutEffect: typeof hooks.useLayoutEffect = inBrowser ? hooks.useLayoutEffect : () => {};
