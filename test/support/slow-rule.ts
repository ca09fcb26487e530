import { helpersOf } from "./unit-rules.ts";

/** Ending of the names of slow test files, which `npm run test:quick` leaves out. */
const SLOW = ".slow.test.ts";
/** Helpers that build the program or a package, or start a browser, another mail server, a filter, sqld, pebble or a tool of an npm package. */
const SLOW_HELPERS: readonly string[] = [
  "test/support/built-program.ts",
  "test/support/browser.ts",
  "test/support/installed.ts",
  "test/support/npm-tool.ts",
  "test/support/pebble.ts",
  "test/support/peers/exim.ts",
  "test/support/peers/opensmtpd.ts",
  "test/support/peers/postfix.ts",
  "test/support/peers/spam-filters.ts",
  "test/support/sqld.ts",
];
/** Starts sqld only for the tests of the engines, which name sqld themselves. */
const CLOSED: readonly string[] = ["test/support/database.ts"];

/**
 * Returns the test files whose name does not tell whether they are slow. A file is slow if it reaches a slow helper.
 * Takes the sources of all tests and helpers by path.
 */
export function slowFaults(texts: Readonly<Record<string, string>>): string[] {
  return Object.keys(texts)
    .filter((path) => path.endsWith(".test.ts"))
    .sort()
    .flatMap((path) => {
      const helper = helpersOf(path, texts, CLOSED).find((file) => SLOW_HELPERS.includes(file));
      if (path.endsWith(SLOW) === (helper !== undefined)) return [];
      return helper === undefined
        ? [`${path}: uses nothing slow; name it ${path.replace(SLOW, ".test.ts")}`]
        : [`${path}: uses ${helper}; name it ${path.replace(".test.ts", SLOW)}`];
    });
}
