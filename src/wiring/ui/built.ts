/** A compressed file of the dashboard in the program. */
export interface BuiltFile {
  /** Its name in URLs. */
  name: string;
  /** The path at which the program reads it. */
  path: string;
  /** True if the page loads it only when it needs it. */
  later: boolean;
}

/** The dashboard's files. Null in a clone: `scripts/build.ts` puts another module here, which names the files it made. */
export const builtUi: readonly BuiltFile[] | null = null;

/** The path at which the program reads what draws pages. Null in a clone. */
export const builtDrawing: string | null = null;
