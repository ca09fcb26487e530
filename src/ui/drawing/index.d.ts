/** Input of a drawing: the answers of the API, and what else a browser knows. */
export interface Sheet {
  program: string;
  /** The answer of `/ui/session`, and the projects of an account-wide key. */
  me: object;
  projects: readonly object[];
  /** The project that `answers` are about. Null: the key implies it. */
  project: string | null;
  /** Answers of the API by path and query. */
  answers: Readonly<Record<string, unknown>>;
  /** Scheme, host and port, path and query of the page. */
  origin: string;
  path: string;
  search: string;
  /** The request's cookies, which hold the choices of the browser. */
  cookie: string;
}

export interface Drawing {
  /** The content of the element `#app`. Empty: the page cannot be drawn without further answers. */
  html: string;
  /** Values that the page has read, by its own keys. The browser takes them over. */
  values: Readonly<Record<string, unknown>>;
}

/**
 * Draws a page, once: signals at the level of modules hold its state, so no two pages may share them. Rejects if
 * the page has a fault.
 */
export type Draw = (sheet: Sheet) => Promise<Drawing>;

export declare const draw: Draw;
