import { join } from "node:path";

/** Set by the build: what the code has become. Nothing in a clone. */
declare const BUILT_AS: "program" | "package" | undefined;

interface Form {
  /** The command to type. */
  name: string;
  /** The command as a process starts it. */
  itself: readonly string[];
  /** Returns the place of a worker thread's file, relative to the code that opens it. */
  worker(file: string): string;
}

const FORMS: Readonly<Record<"program" | "package" | "clone", Form>> = {
  // All code has the program's address, and other entries are found by their path in the tree.
  program: {
    name: "postrider",
    itself: [process.execPath],
    worker: (file) => `./src/wiring/cpu/${file}`,
  },
  // Everything is in one folder.
  package: {
    name: "npx @postrider/server",
    itself: [process.execPath, ...process.execArgv, join(import.meta.dir, "main.js")],
    worker: (file) => `./${file.replace(/\.ts$/, ".js")}`,
  },
  clone: {
    name: "npm run postrider --",
    itself: [process.execPath, join(import.meta.dir, "../../main.ts")],
    worker: (file) => `./${file}`,
  },
};

/** What runs: the built program, the package of npm, or the sources of a clone. */
export const FORM: Form = FORMS[typeof BUILT_AS === "undefined" ? "clone" : BUILT_AS];
