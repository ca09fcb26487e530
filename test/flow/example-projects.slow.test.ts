import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CHROMIUM } from "../support/browser.ts";
import { newFolder } from "../support/folder.ts";
import { installPackages } from "../support/installed.ts";
import { until } from "../support/poll.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);

const ROOT = join(import.meta.dir, "../..");
const SDK = join(ROOT, "sdk");
const EXAMPLES = join(SDK, "examples");
const TOOLS = join(SDK, "node_modules");
const NODE_20 = join(TOOLS, "node20/bin/node");
const NODE_22 = join(TOOLS, "node22/bin/node");
const DENO = join(TOOLS, `@deno/${process.platform}-${process.arch}-glibc/deno`);
const CHROMIUM_PATH = CHROMIUM ?? "";

let server = "";
beforeAll(async () => {
  server = (await installPackages(EXAMPLES)).server.folder;
}, LIMIT_MS);

/** Runs a project to its end. Returns what it printed, with the services that outlive it. */
async function ran(project: string, command: readonly string[]) {
  const from = performance.now();
  const temporary = newFolder("example");
  const child = Bun.spawn([...command], {
    cwd: join(EXAMPLES, project),
    env: {
      PATH: process.env.PATH ?? "",
      HOME: temporary,
      TMPDIR: temporary,
      NO_COLOR: "1",
      CHROMIUM_PATH,
      DENO_NO_UPDATE_CHECK: "1",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const left = readdirSync(temporary).filter((name) => name.startsWith("postrider-test-"));
  process.stderr.write(`examples: ${project} ${((performance.now() - from) / 1000).toFixed(1)} s\n`);
  return { code, said: out + err, left: [...left, ...services()] };
}

/** Returns the running services of this folder's package. */
function services(): string[] {
  const main = join(server, "dist/main.js");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandLine(pid).includes(main));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has just ended.
    return "";
  }
}

const tool = (path: string): string => join(TOOLS, path);
const RUNNERS = [
  { name: "bun", needs: process.execPath, command: [process.execPath, "test"], says: "1 pass" },
  { name: "node", needs: NODE_22, command: [NODE_22, "--test"], says: "pass 1" },
  {
    name: "vitest",
    needs: tool("vitest"),
    command: [NODE_22, tool("vitest/vitest.mjs"), "run"],
    says: "2 passed",
  },
  { name: "jest", needs: tool("jest"), command: [NODE_22, tool("jest/bin/jest.js")], says: "2 passed" },
  {
    name: "playwright",
    needs: CHROMIUM_PATH,
    command: [NODE_22, tool("@playwright/test/cli.js"), "test"],
    says: "1 passed",
  },
];

for (const { name, needs, command, says } of RUNNERS)
  test.skipIf(!existsSync(needs) || !existsSync(NODE_22))(
    `the example for ${name} passes, ends and leaves nothing running`,
    async () => {
      const { code, said, left } = await ran(name, command);
      expect(said).toContain(says);
      // Jest says so if something keeps it from ending.
      expect(said).not.toContain("did not exit");
      expect([code, left]).toEqual([0, []]);
    },
  );

test("the examples name the versions of the runners that they are tried with", () => {
  const { devDependencies: tried } = JSON.parse(readFileSync(join(SDK, "package.json"), "utf8"));
  for (const { name } of RUNNERS) {
    const { devDependencies } = JSON.parse(readFileSync(join(EXAMPLES, name, "package.json"), "utf8"));
    const { "@postrider/server": service, postrider, ...others } = devDependencies;
    expect([service, postrider]).toEqual(["latest", "latest"]);
    expect(tried).toMatchObject(others);
  }
});

const RUNTIMES = [
  { name: "Node.js 20", command: [NODE_20] },
  { name: "Node.js 22", command: [NODE_22] },
  { name: "Bun", command: [process.execPath] },
  { name: "Deno", command: [DENO, "run", "-A", "--no-prompt", "--node-modules-dir=manual"] },
];

for (const { name, command } of RUNTIMES)
  test.skipIf(!existsSync(command[0] ?? ""))(
    `the installed packages send, receive and take webhooks on ${name}`,
    async () => {
      const { code, said, left } = await ran("script", [...command, "round-trip.mjs"]);
      expect(JSON.parse(said)).toEqual({
        codes: ["493817"],
        isSame: true,
        event: "delivery",
        subject: "Re: Hi",
      });
      expect([code, left]).toEqual([0, []]);
    },
  );

test.skipIf(!existsSync(NODE_20))(
  "the service ends when Node.js is killed in the middle of a test",
  async () => {
    const script =
      "require('postrider/testing').startPostrider().then(({ url }) => console.log(url)); setInterval(() => {}, 1000);";
    // Below a package of its own. Elsewhere in the client's folder, Node.js takes the client's own files.
    const cwd = join(EXAMPLES, "script");
    const child = Bun.spawn([NODE_20, "-e", script], { cwd, stdout: "pipe", stderr: "inherit" });
    const { value } = await child.stdout.getReader().read();
    expect((await fetch(`${new TextDecoder().decode(value).trim()}/livez`)).status).toBe(200);
    expect(services()).toHaveLength(1);
    child.kill("SIGKILL");
    await until(() => services().length === 0);
  },
);
