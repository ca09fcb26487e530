import { afterAll } from "bun:test";
import { delimiter, join } from "node:path";
import { removeFolders } from "./folder.ts";

// Runs before every `bun test`, so that the programs which the tests drive are installed even after a fresh clone.
const root = join(import.meta.dir, "../..");

// Debian installs smtp-sink and smtp-source in a folder of root's PATH.
process.env.PATH = [process.env.PATH, "/usr/sbin", "/sbin"].join(delimiter);

const tools = Bun.spawnSync(["sh", join(root, "scripts/test-tools.sh")], {
  stdin: "ignore",
  stdout: "inherit",
  stderr: "inherit",
});
// Tests that need no tool still run. If a tool is missing, its tests fail and name it.
if (!tools.success) process.stderr.write("test-tools: tests that need what is missing will fail\n");

// Runs after each file of a parallel run, or else after the last file. A test run sends no event when the process
// ends.
afterAll(removeFolders);
