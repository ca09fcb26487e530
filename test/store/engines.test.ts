import { afterAll, beforeAll, describe, setDefaultTimeout } from "bun:test";
import { readdirSync } from "node:fs";
import { basename } from "node:path";
import { type EngineName, useEngine } from "../support/database.ts";

/** Milliseconds: programs start within seconds where the machine has much else to do. */
setDefaultTimeout(90_000);

/** Every other file here says what a database does in a file of our own; what is said of that holds for the others. */
const OTHERS: readonly EngineName[] = ["server", "replica"];
const FILES = readdirSync(import.meta.dir).filter(
  (name) => name.endsWith(".test.ts") && name !== basename(import.meta.path),
);

for (const engine of OTHERS)
  describe(`on a ${engine}`, () => {
    beforeAll(() => useEngine(engine));
    afterAll(() => useEngine("file"));
    for (const file of FILES)
      describe(file, async () => {
        // The query makes it another module, whose tests are registered here.
        await import(`./${file}?${engine}`);
      });
  });
