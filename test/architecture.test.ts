import { createHash } from "node:crypto";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dirname, join } from "node:path";
import { MIGRATIONS } from "../src/store/engine/migrations.ts";
import { linkedAdvice } from "./support/advice-rule.ts";
import { BUDGET_HOMES, memoryBudgets } from "./support/budget-rule.ts";
import { ownDirection } from "./support/direction-rule.ts";
import { newFolder } from "./support/folder.ts";
import {
  ARROWS,
  arrows,
  barrels,
  clock,
  configValues,
  coreIsPure,
  crowdedFolders,
  ENTRIES,
  environment,
  folderCircles,
  importCircles,
  LIBRARY_HOMES,
  length,
  libraries,
  MAX_FILES,
  MAX_LINES,
  plainLiterals,
  type Rule,
  sql,
} from "./support/house-rules.ts";
import { slowFaults } from "./support/slow-rule.ts";
import { parseFiles, readFiles, type Source } from "./support/source-files.ts";
import { unitFaults } from "./support/unit-rules.ts";
import { RELEASED_STEPS } from "./upgrade/fixture.ts";

const ROOT = join(import.meta.dir, "..");

interface Probe {
  /** Path of the made-up source. */
  path: string;
  source: string;
  /** The rule's complaints without the path. Empty if there are none. */
  says: readonly string[];
}

/** Each rule, with made-up sources that it must reject or accept. */
const RULES: readonly { name: string; rule: Rule; probes: readonly Probe[] }[] = [
  {
    name: "rooms import downwards only",
    rule: arrows,
    probes: [
      {
        path: "src/core/a.ts",
        source: `import "../store/b.ts";`,
        says: ["1: core must not import store/b.ts"],
      },
      {
        path: "src/core/b.ts",
        source: `import { log } from "../log.ts";`,
        says: ["1: core must not import log.ts"],
      },
      {
        path: "src/mail/a.ts",
        source: `import type { B } from "../smtp/b.ts";`,
        says: ["1: mail must not import smtp/b.ts"],
      },
      {
        path: "src/smtp/client/a.ts",
        source: `\n\nexport * from "../../net/b.ts";`,
        says: ["3: smtp must not import net/b.ts"],
      },
      {
        path: "src/net/a.ts",
        source: `export async function f() { await import("../queue/b.ts"); }`,
        says: ["1: net must not import queue/b.ts"],
      },
      {
        path: "src/store/a.ts",
        source: `type X = import("../flows/b.ts").X;`,
        says: ["1: store must not import flows/b.ts"],
      },
      {
        path: "src/queue/a.ts",
        source: `import { a } from "../config.ts";`,
        says: ["1: queue must not import config.ts"],
      },
      {
        path: "src/flows/deliver/a.ts",
        source: `import { a } from "../../queue/open.ts";\nimport { b } from "../../http/b.ts";`,
        says: ["1: flows must not import queue/open.ts", "2: flows must not import http/b.ts"],
      },
      {
        path: "src/http/a.ts",
        source: `import "../mail/b.ts";`,
        says: ["1: http must not import mail/b.ts"],
      },
      {
        path: "src/ui/a.tsx",
        source: `import type { A } from "../core/a.ts"; import { log } from "../log.ts";`,
        says: ["1: ui must not import core/a.ts", "1: ui must not import log.ts"],
      },
      { path: "src/utils/a.ts", source: "", says: ["1: utils is no room that the arrows know"] },
      {
        path: "src/flows/webhooks/a.ts",
        source: `import "../../queue/port.ts"; import "../../core/b.ts"; import "../send/c.ts"; import "../../log.ts";
          import { type Config } from "../../config.ts"; import type { Plan } from "../../config/families.ts"; import text from "../../../package.json";`,
        says: [],
      },
    ],
  },
  {
    name: "only main.ts and app.ts import values of the configuration",
    rule: configValues,
    probes: [
      {
        path: "src/wiring/a.ts",
        source: `import { type Config, loadConfig } from "../config.ts";`,
        says: ["1: values of config.ts are for main.ts and app.ts only"],
      },
      { path: "src/wiring/b.ts", source: `import type { Config } from "../config.ts";`, says: [] },
      { path: "src/main.ts", source: `import { loadConfig } from "./config.ts";`, says: [] },
    ],
  },
  {
    name: "each library is imported in its home only",
    rule: libraries,
    probes: [
      {
        path: "src/http/a.ts",
        source: `import { Redis } from "ioredis";`,
        says: ["1: ioredis belongs to queue"],
      },
      {
        path: "src/net/a.ts",
        source: `import { spf } from "mailauth/lib/spf";\nimport Database from "libsql/promise";`,
        says: ["1: mailauth belongs to mail", "2: libsql belongs to store"],
      },
      { path: "src/core/a.ts", source: `import x from "left-pad";`, says: ["1: left-pad has no home yet"] },
      {
        path: "src/smtp/a.ts",
        source: `import { Counter } from "prom-client";`,
        says: ["1: prom-client belongs to metrics.ts"],
      },
      {
        path: "src/metrics.ts",
        source: `import "prom-client"; import "node:fs"; import "bun";`,
        says: [],
      },
    ],
  },
  {
    name: "core uses no built-in that does input or output",
    rule: coreIsPure,
    probes: [
      {
        path: "src/core/a.ts",
        source: `import { readFileSync } from "node:fs";\nimport { dns } from "bun";`,
        says: ["1: core does no input or output, node:fs does", "2: core does no input or output, bun does"],
      },
      { path: "src/core/b.ts", source: `import { createHmac } from "node:crypto";`, says: [] },
      { path: "src/net/c.ts", source: `import { connect } from "node:net";`, says: [] },
    ],
  },
  {
    name: "the environment is read in config.ts only",
    rule: environment,
    probes: [
      {
        path: "src/main.ts",
        source: `loadConfig(process.env);\nconst home = process.env.HOME;\nconst other = Bun.env;`,
        says: [
          "2: the environment is read in config.ts only",
          "3: the environment is read in config.ts only",
        ],
      },
      {
        path: "src/app.ts",
        source: `loadConfig(process.env);`,
        says: ["1: the environment is read in config.ts only"],
      },
      { path: "src/config.ts", source: `const home = process.env.HOME; // process.env`, says: [] },
    ],
  },
  {
    name: "time is asked of the injected clock only",
    rule: clock,
    probes: [
      {
        path: "src/core/a.ts",
        source: [
          "const at = Date.now();",
          "const day = new Date();",
          "setTimeout(() => {}, 1);",
          "const timer = { now: Date.now };",
          "const signal = AbortSignal.timeout(5);",
          "const ms = performance.now();",
          "globalThis.setInterval(() => {}, 1);",
          `import { setTimeout as wait } from "node:timers/promises";`,
        ].join("\n"),
        says: [8, 1, 2, 3, 4, 5, 6, 7].map((line) => `${line}: time is asked of the injected clock only`),
      },
      {
        path: "src/core/b.ts",
        source: `// Date.now()\nconst text = new Date(0).toISOString(); const word = "setTimeout(";`,
        says: [],
      },
      { path: "src/clock.ts", source: `export const now = () => Date.now();`, says: [] },
    ],
  },
  {
    name: "SQL is written in the store only",
    rule: sql,
    probes: [
      {
        path: "src/flows/a.ts",
        source: [
          'const one = "SELECT id FROM messages";',
          "const two = `\n  UPDATE messages SET status = ?`;",
          `const three = \`DELETE FROM \${table}\`;`,
          "const four = 'PRAGMA user_version';",
        ].join("\n"),
        says: [1, 2, 4, 5].map((line) => `${line}: SQL is written in the store only`),
      },
      {
        path: "src/http/a.ts",
        source: `const route = "DELETE /v1/x"; const verb = "CREATE"; // SELECT 1`,
        says: [],
      },
      { path: "src/store/a.ts", source: `const one = "SELECT 1";`, says: [] },
    ],
  },
  {
    name: "stored content is read within a memory budget",
    rule: memoryBudgets,
    probes: [
      {
        path: "src/flows/a.ts",
        source: "read(reservedBudget());\nread(budgetOf(1));\nread(waitingBudget((_, go) => go()));",
        says: [1, 2, 3].map((line) => `${line}: only the files in BUDGET_HOMES make memory budgets`),
      },
      {
        path: "src/store/a.ts",
        source: [
          "async function a(deps: Deps) { return contentBytes(deps, content, budget); }",
          "async function b(deps: Deps, budget?: MemoryBudget) { yield* contentPieces(deps, content, budget); }",
          "async function c(budget: MemoryBudget = mine) { return objects.read(name, size); }",
          "function d(db: Db) { return db.all(`SELECT bytes FROM content_chunks WHERE key = ?`); }",
        ].join("\n"),
        says: ["a", "b", "c", "d"].map(
          (name, at) => `${at + 1}: ${name} reads content and requires no MemoryBudget`,
        ),
      },
      {
        path: "src/store/b.ts",
        source:
          "async function a(deps: Deps, budget: MemoryBudget) { return contentBytes(deps, content, budget); }",
        says: [],
      },
      { path: "src/flows/sweep/offload.ts", source: "move(reservedBudget());", says: [] },
    ],
  },
  {
    name: "what people write has its own direction",
    rule: ownDirection,
    probes: [
      {
        path: "src/ui/a.tsx",
        source: [
          "const a = <p>{subject}</p>;",
          "const b = <p title={subject}>{list.map(({ subject }) => <i dir='auto'>{subject}</i>)}</p>;",
          "const d = <p>{textOf(subject.type)}{subject.slice(0, 9)}</p>;",
          "const c = <p>{file === null ? '' : file.filename}<bdi>{fromName}</bdi></p>;",
        ].join("\n"),
        says: [
          '1: subject is shown without dir="auto"',
          '3: subject is shown without dir="auto"',
          '4: filename is shown without dir="auto"',
        ],
      },
    ],
  },
  {
    name: "an operation that the service advises has a page in the dashboard",
    rule: linkedAdvice,
    probes: [
      {
        path: "src/flows/a.ts",
        source: [
          'refuse("Add it with POST /v1/domains.");',
          "refuse(`Verify it: POST /v1/domains/$" + "{id}/verify.`);",
          'refuse("Send it with POST /v1/emails/batch.");',
          "refuse(`Read $" + "{name} at /v1/stats now`);",
          "get(`/v1/odd/$" + "{id}`);",
        ].join("\n"),
        says: [
          "3: PLACES of ui/words/operations has no POST /v1/emails/batch.",
          "4: PLACES of ui/words/operations has no at /v1/stats",
        ],
      },
      {
        path: "src/http/routes/a.ts",
        source: 'projectRoute({ description: "As GET /v1/odd shows it." }); OneOf(ODD, "See GET /v1/odd.");',
        says: [],
      },
      {
        path: "src/ui/a.tsx",
        source: "const a = <p>More are in GET /v1/lanes.</p>;",
        says: ["1: PLACES of ui/words/operations has no GET /v1/lanes."],
      },
      { path: "src/commands/a.ts", source: 'say("Read GET /v1/odd.");', says: [] },
    ],
  },
  {
    name: `no file is longer than ${MAX_LINES} lines`,
    rule: length,
    probes: [
      {
        path: "src/core/long.ts",
        source: "// line\n".repeat(MAX_LINES + 1),
        says: [`${MAX_LINES + 1}: ${MAX_LINES + 1} lines, ${MAX_LINES} are allowed`],
      },
      { path: "src/core/just.ts", source: "// line\n".repeat(MAX_LINES), says: [] },
    ],
  },
  {
    name: "no literal is spread where it stands",
    rule: plainLiterals,
    probes: [
      {
        path: "src/core/a.ts",
        source: `const a = { ...{ b: 1 } };\nconst c = [...["d"], ...e];\nf(...[1]);`,
        says: [
          "1: a literal is spread: write its parts in its place",
          "2: a literal is spread: write its parts in its place",
          "3: a literal is spread: write its parts in its place",
        ],
      },
      {
        path: "src/core/b.ts",
        source: `const a = { ...b, ...(c ? { d: 1 } : {}) };`,
        says: [],
      },
    ],
  },
  {
    name: "no file consists of re-exports only",
    rule: barrels,
    probes: [
      {
        path: "src/core/index.ts",
        source: `export * from "./a.ts"; import { b } from "./b.ts"; export { b };`,
        says: ["1: a file that only hands on what others export"],
      },
      { path: "src/core/c.ts", source: `import { a } from "./a.ts"; export const b = a;`, says: [] },
    ],
  },
];

/** Milliseconds: another program parses all of src, which takes seconds if the machine is busy. */
setDefaultTimeout(60_000);

let sources: readonly Source[] = [];
let packages: readonly string[] = [];
beforeAll(async () => {
  sources = (await parseFiles(await readFiles(ROOT, "src/**/*.{ts,tsx}"))).filter(
    ({ path }) => !path.endsWith(".d.ts"),
  );
  packages = Object.keys((await import("../package.json")).dependencies);
});

test("there are sources to look at", () => {
  const paths = sources.map(({ path }) => path);
  expect(paths).toContain("src/core/ids.ts");
  expect(paths).toContain("src/queue/port.ts");
});

describe("no file imports itself by way of other files", () => {
  test("holds in all of src", () => {
    expect(importCircles(sources)).toEqual([]);
  });

  test("finds a circle of three files, and none in a chain", async () => {
    const file = (name: string, imported: string) =>
      [`src/core/${name}.ts`, `import type { X } from "./${imported}.ts";`] as const;
    const circle = await parseFiles(Object.fromEntries([file("a", "b"), file("b", "c"), file("c", "a")]));
    expect(importCircles(circle)).toEqual(["src/core/a.ts → src/core/b.ts → src/core/c.ts → src/core/a.ts"]);
    const chain = await parseFiles(Object.fromEntries([file("a", "b"), file("b", "c")]));
    expect(importCircles(chain)).toEqual([]);
  });
});

describe("no folder imports itself by way of other folders", () => {
  test("holds in all of src", () => {
    expect(folderCircles(sources)).toEqual([]);
  });

  test("finds two folders that import each other, and none in a chain or through a file of src", async () => {
    const made = (files: Record<string, string>) =>
      parseFiles(
        Object.fromEntries(
          Object.entries(files).map(([path, from]) => [path, `import { x } from "${from}";`]),
        ),
      );
    const pair = { "src/core/a/one.ts": "../b/two.ts", "src/core/b/three.ts": "../a/four.ts" };
    expect(folderCircles(await made(pair))).toEqual(["src/core/a → src/core/b → src/core/a"]);
    const chain = { "src/core/a/one.ts": "../b/two.ts", "src/core/b/three.ts": "../c/four.ts" };
    expect(folderCircles(await made(chain))).toEqual([]);
    const through = { "src/core/a/one.ts": "../../log.ts", "src/log.ts": "./core/a/two.ts" };
    expect(folderCircles(await made(through))).toEqual([]);
  });
});

describe(`no folder has more than ${MAX_FILES} files`, () => {
  test("holds in all of src", () => {
    expect(crowdedFolders(sources.map(({ path }) => path))).toEqual([]);
  });

  test("finds the folder with one file more", () => {
    const files = Array.from({ length: MAX_FILES + 1 }, (_, at) => `src/core/a/${at}.ts`);
    expect(crowdedFolders(files.slice(1))).toEqual([]);
    expect(crowdedFolders(files)).toEqual([`src/core/a: ${MAX_FILES + 1} files, ${MAX_FILES} are allowed`]);
  });
});

describe("importing a file opens nothing and starts nothing", () => {
  const importAll = (root: string, paths: readonly string[]) => {
    const program = join(ROOT, "test/support/import-all-main.ts");
    const child = Bun.spawnSync([process.execPath, program, root, ...paths], { cwd: ROOT, env: {} });
    return `${child.stdout}${child.stderr}`.trim().split("\n");
  };

  test("holds in all of src", () => {
    const paths = sources.map(({ path }) => path).filter((path) => !ENTRIES.has(path));
    expect(importAll(ROOT, paths)).toEqual([`imported ${paths.length} files`]);
  });

  test("finds what a file does when it is imported, and what it leaves open", async () => {
    const root = newFolder("imports");
    const files = {
      "timer.ts": "setInterval(() => {}, 1000);",
      "socket.ts": `const at = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });`,
      "server.ts": `import { createServer } from "node:net"; createServer().listen(0, "127.0.0.1");`,
      "quiet.ts": "export const start = () => setTimeout(() => {}, 1000); export const names = new Set([1]);",
    };
    for (const [name, text] of Object.entries(files)) await Bun.write(join(root, name), text);
    expect(importAll(root, Object.keys(files))).toEqual([
      "timer.ts: setInterval",
      "socket.ts: listen",
      "server.ts: listen",
      "imported 4 files",
      "something is still open",
    ]);
    expect(importAll(root, ["quiet.ts"])).toEqual(["imported 1 files"]);
  });
});

for (const { name, rule, probes } of RULES) {
  describe(name, () => {
    test("holds in all of src", () => {
      expect(sources.flatMap(rule)).toEqual([]);
    });

    test("finds exactly the faults in the probes", async () => {
      const parsed = await parseFiles(Object.fromEntries(probes.map(({ path, source }) => [path, source])));
      for (const { path, says } of probes) {
        const source = parsed.find((candidate) => candidate.path === path);
        if (source === undefined) throw new Error(`${path} was not parsed`);
        expect(rule(source)).toEqual(says.map((sentence) => `${path}:${sentence}`));
      }
    });
  });
}

test("no literal is spread where it stands: holds in tests and benchmarks", async () => {
  const texts = { ...(await readFiles(ROOT, "test/**/*.ts")), ...(await readFiles(ROOT, "bench/**/*.ts")) };
  const spreading = Object.entries(texts).filter(([, text]) => /\.\.\.[[{]/.test(text));
  expect((await parseFiles(Object.fromEntries(spreading))).flatMap(plainLiterals)).toEqual([]);
});

test("each library of package.json has a home, and each home is a room or a file", () => {
  // Bun runs the rest.
  expect(packages.filter((name) => !Object.hasOwn(LIBRARY_HOMES, name))).toEqual(["bun"]);
  for (const home of Object.values(LIBRARY_HOMES).flat()) {
    const known = Object.hasOwn(ARROWS, home) || sources.some(({ path }) => path === `src/${home}`);
    expect([home, known]).toEqual([home, true]);
  }
});

test("each file that may make a memory budget does", () => {
  const makers = sources.filter(({ text }) => /\b(?:waitingBudget|budgetOf|reservedBudget)\(/.test(text));
  const paths = makers.map(({ path }) => path);
  expect(Object.keys(BUDGET_HOMES).filter((path) => !paths.includes(path))).toEqual([]);
});

test("only test/support/folder.ts makes temporary folders", async () => {
  const texts = Object.entries(await readFiles(ROOT, "test/**/*.ts"));
  const makers = texts.filter(([, text]) => /\b(?:mkdtemp|tmpdir)\w*\(/.test(text));
  expect(makers.map(([path]) => path)).toEqual(["test/support/folder.ts"]);
});

describe("unit tests mirror src and do no input or output", () => {
  test("holds in all of test/unit", async () => {
    const texts = await readFiles(ROOT, "test/**/*.ts");
    expect(unitFaults(texts, new Set(sources.map(({ path }) => dirname(path))))).toEqual([]);
  });

  test.each([
    ["import { net } from 'node:net';", []],
    ["Bun.serve({});", ["test/unit/mail/a.test.ts: test/unit/mail/a.test.ts does input or output"]],
    [
      'import { b } from "../../support/b.ts";',
      ["test/unit/mail/a.test.ts: test/support/c.ts does input or output"],
    ],
  ])("finds the fault of %s", (text, faults) => {
    const helpers = { "test/support/b.ts": 'import "./c.ts";', "test/support/c.ts": "Bun.listen({});" };
    expect(unitFaults({ "test/unit/mail/a.test.ts": text, ...helpers }, new Set(["src/mail"]))).toEqual(
      faults,
    );
  });

  test("finds a folder that src does not have", () => {
    const faults = ["test/unit/letters/a.test.ts: there is no src/letters"];
    expect(unitFaults({ "test/unit/letters/a.test.ts": "" }, new Set(["src/mail"]))).toEqual(faults);
  });
});

describe("the name of a test file tells whether it is slow", () => {
  test("holds in all of test", async () => {
    expect(slowFaults(await readFiles(ROOT, "test/**/*.ts"))).toEqual([]);
  });

  test("finds a slow file with a quick one's name, and a quick file with a slow one's name", () => {
    const texts = {
      "test/flow/a.test.ts": 'import "../support/helper.ts";',
      "test/flow/b.slow.test.ts": 'import "../support/database.ts";',
      "test/flow/c.slow.test.ts": 'import "../support/helper.ts";',
      "test/support/database.ts": 'import "./sqld.ts";',
      "test/support/helper.ts": 'import "./browser.ts";',
      "test/support/browser.ts": "",
      "test/support/sqld.ts": "",
    };
    expect(slowFaults(texts)).toEqual([
      "test/flow/a.test.ts: uses test/support/browser.ts; name it test/flow/a.slow.test.ts",
      "test/flow/b.slow.test.ts: uses nothing slow; name it test/flow/b.test.ts",
    ]);
  });
});

test.each(Object.entries(RELEASED_STEPS))("the released schema step %s is what it was", (name, checksum) => {
  const step = MIGRATIONS.find((one) => one.name === name);
  const says = `the schema step ${name} was released and never changes: put the change into a new file of db/migrations (docs/architecture.md, "Changing the schema")`;
  expect(
    createHash("sha256")
      .update(step?.sql ?? "")
      .digest("hex"),
    says,
  ).toBe(checksum);
});
