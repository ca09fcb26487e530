import { afterAll, beforeAll, describe, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type EngineName, useEngine } from "../../support/database.ts";
import { NO_SQLD } from "../../support/sqld.ts";

const STORE = join(import.meta.dir, "..");
const FILES = readdirSync(STORE).filter((name) => name.endsWith(".test.ts"));

/**
 * Runs every file of test/store on another engine: those tests open a file database, and must pass on a server and on a
 * replica as well. Of many cases that differ only in the query to SQLite, a share runs here. Tests of the file
 * engine itself are in test/store/file and do not run here.
 */
export function everyFileOn(engine: EngineName): void {
  // Milliseconds: on a busy machine programs take seconds to start.
  setDefaultTimeout(90_000);
  const missing = engine.startsWith("sqld") ? NO_SQLD : null;
  if (missing !== null) {
    test.skip(`${engine}: ${missing}`, () => undefined);
    return;
  }
  // The files choose their cases for this engine while they are loaded, which ends before the last group begins.
  const loading = useEngine(engine);
  describe(`on ${engine}`, () => {
    let back = (): void => undefined;
    beforeAll(() => {
      ({ back } = useEngine(engine));
    });
    afterAll(() => back());
    for (const file of FILES)
      describe(file, async () => {
        // The query string loads the file as a new module, whose tests are registered here.
        await import(`../${file}?${engine}`);
      });
  });
  describe("all are loaded", () => loading.back());
}
