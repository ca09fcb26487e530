import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import { storageParts } from "../../src/wiring/health.ts";
import { newFolder } from "../support/folder.ts";

// A file system without any blocks.
const OTHER_DISK = "/proc";

async function blocksLookedAt(env: Record<string, string>): Promise<number> {
  const config = loadConfig({ DATA_DIR: newFolder("health"), ...env });
  const db = () => {
    throw new Error("there is no database");
  };
  return (await storageParts({ config, clock: systemClock, db }).disk()).total;
}

test("disk space is measured where the database grows", async () => {
  const link = join(newFolder("health"), "linked.db");
  symlinkSync(`${OTHER_DISK}/version`, link);
  expect((await statfs(OTHER_DISK)).blocks).toBe(0);
  expect(await blocksLookedAt({ DATABASE_URL: `file:${OTHER_DISK}/x.db` })).toBe(0);
  expect(await blocksLookedAt({ DATABASE_URL: `file:${link}` })).toBe(0);
  expect(await blocksLookedAt({})).toBeGreaterThan(0);
  expect(await blocksLookedAt({ DATABASE_URL: "http://127.0.0.1:1" })).toBeGreaterThan(0);
});
