import { afterAll } from "bun:test";
import { delimiter, join } from "node:path";
import { removeFolders } from "./folder.ts";

// Runs before every `bun test`: a plain one, right after a clone was set up, must find what the tests drive.
const root = join(import.meta.dir, "../..");

// Debian keeps smtp-sink and smtp-source where only root's PATH looks.
process.env.PATH = [process.env.PATH, "/usr/sbin", "/sbin"].join(delimiter);

const tools = Bun.spawnSync(["sh", join(root, "scripts/test-tools.sh")], {
  stdin: "ignore",
  stdout: "inherit",
  stderr: "inherit",
});
// Tests that need none of the tools run all the same; the others fail and name the program they miss.
if (!tools.success) process.stderr.write("test-tools: tests that need what is missing will fail\n");

// Behind each file of a parallel run, else behind the last one: a run of tests tells nobody that the process ends.
afterAll(removeFolders);
