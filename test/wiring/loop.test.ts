import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/**
 * A loop that fails every second of a clock for two minutes, in a separate process because the log's set-up is
 * global.
 */
const PROGRAM = `
  const { configureLog } = await import("${ROOT}/src/log.ts");
  const { startLoop } = await import("${ROOT}/src/wiring/process/loop.ts");
  const { manualClock } = await import("${ROOT}/test/support/manual-clock.ts");
  await configureLog("info", "json");
  const clock = manualClock();
  let turns = 0;
  const failed = [];
  const turn = async () => { turns++; throw new Error("full"); };
  startLoop({ clock, failures: (loop) => () => failed.push(loop) }, 1000, { name: "sweep", turn });
  for (let second = 0; second < 120; second++) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1000);
  }
  await new Promise((resolve) => setImmediate(resolve));
  console.log(JSON.stringify([turns, failed.length, ...new Set(failed)]));
`;

test("a loop that keeps failing continues, and is logged once a minute", async () => {
  const child = Bun.spawn([process.execPath, "-e", PROGRAM], { stderr: "pipe", stdout: "pipe" });
  const [said, turns] = await Promise.all([
    new Response(child.stderr).text(),
    new Response(child.stdout).text(),
  ]);
  expect(JSON.parse(turns)).toEqual([121, 121, "sweep"]);
  const lines = said.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: "error", message: "a turn failed", loop: "sweep", error: "Error: full" },
    { loop: "sweep", untold: 59 },
    { loop: "sweep", untold: 59 },
  ]);
});
