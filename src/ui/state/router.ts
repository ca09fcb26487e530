import { computed, signal } from "@preact/signals";
import { changedUrl } from "./paths.ts";

/** The place of the app: path and query of the address bar. */
export interface Place {
  path: string;
  search: string;
}

export interface PageProps {
  /** The parameters of the page's path, such as `id`. */
  params: Readonly<Record<string, string>>;
  /** Returns whether the reader may open the page of a URL. */
  mayVisit: (url: string) => boolean;
}

const HOME: Place = { path: "/", search: "" };
/** The place that is shown. Change it with `navigate`. */
export const place = signal<Place>(HOME);

/** Scheme, host and port of the page. */
export const origin = signal("");

export const query = computed(() => new URLSearchParams(place.value.search));

/** First segments of paths that the service answers itself. */
const OUTSIDE: ReadonlySet<string> = new Set(["v1", "docs", "ui", "resend", "mcp"]);

function read(): Place {
  return { path: window.location.pathname, search: window.location.search };
}

/** Begins to follow the address bar and the links of the page. */
export function startRouter(): void {
  origin.value = window.location.origin;
  place.value = read();
  window.addEventListener("popstate", () => {
    place.value = read();
  });
  document.addEventListener("click", followLink);
}

function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.hasAttribute("download")) return;
  if (link.origin !== window.location.origin || OUTSIDE.has(link.pathname.split("/")[1] ?? "")) return;
  // All pages show one project, so the browser loads those of another one.
  const named = new URLSearchParams(link.search).get("project");
  if (named !== null && named !== query.peek().get("project")) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}

export interface Navigation {
  /** Replaces the current entry of the history, so that Back does not return to it. */
  replace?: boolean;
}

/** Goes to a path with its query. */
export function navigate(url: string, { replace = false }: Navigation = {}): void {
  if (url === place.peek().path + place.peek().search) return;
  if (replace) window.history.replaceState(null, "", url);
  else window.history.pushState(null, "", url);
  place.value = read();
}

/**
 * Returns a URL: the path with the current query and these changes. Null or an empty string removes a parameter.
 */
export function urlWith(changes: Readonly<Record<string, string | null>>, path = place.value.path): string {
  return changedUrl(path, place.value.search, changes);
}
