import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "../../src/commands/table.ts";
import { captureService, onTerminal, postrider } from "./command-program.ts";
import { builtProgram } from "../support/built-program.ts";
import { newFolder } from "../support/folder.ts";
import { HURRIED_PROCESS, hurriedEnv } from "../support/hurried-clock.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);
const NAMES = Object.keys(COMMANDS);
/** Times as fast as the system's clock: a process reports its keys every 15 seconds. */
const HURRY = 10;

test("--help names every command and every exit code, and needs no settings", async () => {
  const { code, stdout } = await postrider(["--help"], { PORT: "x" });
  expect(code).toBe(0);
  for (const name of NAMES) expect(stdout).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
  for (const exitCode of [0, 1, 64, 69, 70, 78])
    expect(stdout).toMatch(new RegExp(`^  ${exitCode} +\\S`, "m"));
  for (const args of [["help"], ["-h"]]) expect((await postrider(args)).stdout).toBe(stdout);
});

test.each(NAMES)(
  "%s --help shows usage, flags and an example, needs no settings and does nothing",
  async (name) => {
    const words = name.split(" ");
    const folder = newFolder("command");
    const ran = await postrider([...words, "--help"], { PORT: "x", DATA_DIR: folder });
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    expect(ran.stdout).toStartWith(`usage: postrider ${name}`);
    expect(ran.stdout).toMatch(/^ {2}--help +/m);
    expect(ran.stdout).toMatch(/\nexample:\n {2}\S.*postrider|\nexample:\n {2}postrider/);
    for (const line of ran.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(130);
    expect((await postrider(["help", ...words])).stdout).toBe(ran.stdout);
  },
);

test.each(NAMES)("%s refuses an unknown flag before it does anything", async (name) => {
  const ran = await postrider([...name.split(" "), "--frobnicate"], { PORT: "x" });
  expect([ran.code, ran.stdout]).toEqual([64, ""]);
  expect(ran.stderr).toBe(
    `postrider: Unknown option '--frobnicate'\npostrider: see postrider ${name} --help\n`,
  );
});

test.each<[string[], string]>([
  [["fly"], "postrider: no such command: fly\npostrider: see postrider --help\n"],
  [["keys"], "keys create"],
  [["keys", "steal"], "keys revoke"],
  [["migrate", "back"], "too many arguments: back"],
  [["serv", "--json"], "no such command: serv --json\npostrider: did you mean `postrider serve`?\n"],
  [["inbox", "list"], "did you mean `postrider inboxes list`?"],
  [["constructor"], "no such command: constructor"],
])("%p is wrong usage, and the answer leads to the valid choices", async (args, says) => {
  const ran = await postrider(args);
  expect([ran.code, ran.stdout]).toEqual([64, ""]);
  expect(ran.stderr).toContain(says);
});

describe("on a terminal", () => {
  test("migrate and its status are text", async () => {
    const env = { DATA_DIR: newFolder("command") };
    expect(await onTerminal(["migrate", "status"], env)).toMatch(
      /^version +name +applied\n1 +initial +pending\n/,
    );
    // The status makes no database.
    expect(readdirSync(env.DATA_DIR)).toEqual([]);
    expect(await onTerminal(["migrate"], env)).toMatch(/^applied: 1\b/);
    expect(await onTerminal(["migrate"], env)).toBe("up to date\n");
  });

  test("a folder that migrate makes is private to its owner", async () => {
    const folder = join(newFolder("command"), "data");
    await postrider(["migrate"], { DATA_DIR: folder });
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });
});

describe("the examples", () => {
  const { service, env, folder } = captureService();
  beforeAll(async () => {
    symlinkSync(await builtProgram(), join(bin, "postrider"));
    // A change of the master key waits for two reports of the running service.
    await service.start(hurriedEnv(HURRY), HURRIED_PROCESS);
  }, LIMIT_MS);
  afterAll(async () => {
    await service.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const bin = newFolder("command");

  /** They run until they are interrupted. */
  const endless = ["serve", "tail", "listen"];
  test.each(NAMES.filter((name) => !endless.includes(name)))(
    "%s: its example works as printed",
    async (name) => {
      const { stdout: help } = await postrider([...name.split(" "), "--help"]);
      const example = (help.split("\nexample:\n")[1] ?? "").replaceAll(/^ {2}/gm, "");
      expect(example).toContain(`postrider ${name}`);
      const shell = Bun.spawn(["sh", "-e", "-c", example], {
        cwd: newFolder("command"),
        env: { ...env, PATH: `${bin}:${Bun.env.PATH}` },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [said, wrong] = await Promise.all([
        new Response(shell.stdout).text(),
        new Response(shell.stderr).text(),
      ]);
      expect([await shell.exited, wrong.replace(/^.* contains the master key\. .*\n/, "")]).toEqual([0, ""]);
      expect(said).not.toBe("");
    },
  );
});
