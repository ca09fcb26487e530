import type { Me, Project } from "../api/types.ts";

/** A project as the switcher lists it. */
export type Listed = Pick<Project, "id" | "name" | "externalId" | "suspendedAt">;

/** Data that the page itself brings, so that its first content need not wait for requests. */
export interface StartData {
  /** The command that runs the program on its machine. */
  program?: string;
  /** Host of the OpenID provider that signs members in. Null: there is none. */
  provider?: string | null;
  /** True if there are members, whom a mailed link signs in. */
  mailsLinks?: boolean;
  /** Left out if the browser is not signed in. */
  me?: Me;
  projects?: readonly Listed[];
  /** The project that `values` are about. Null: the key implies it. */
  project?: string | null;
  /** Values that the page had read when the server drew it, by its own keys. */
  values?: Readonly<Record<string, unknown>>;
  /** The newest event before the values were read. Null: none is known. */
  lastEventId?: string | null;
}

/** Returns what the page brings, and takes it out: a later session of the tab must not find it. */
export function takeStartData(): StartData {
  const block = document.getElementById("start");
  block?.remove();
  return block?.textContent ? JSON.parse(block.textContent) : {};
}
