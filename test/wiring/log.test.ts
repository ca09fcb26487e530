import { expect, test } from "bun:test";
import { join } from "node:path";
import type { LogFormat } from "../../src/log.ts";

const LOG = join(import.meta.dir, "../../src/log.ts");

/** Lines that a program with a configured log writes, in a separate process because the set-up is global. */
async function textLines(program: string, format: LogFormat): Promise<string[]> {
  const code = `import { configureLog, log } from ${JSON.stringify(LOG)};
    await configureLog("info", ${JSON.stringify(format)}); ${program}`;
  const child = Bun.spawn([process.execPath, "-e", code], { stderr: "pipe", stdout: "ignore" });
  const text = await new Response(child.stderr).text();
  expect(await child.exited).toBe(0);
  return text.split("\n").filter((line) => line !== "");
}

async function linesOf(program: string): Promise<Record<string, unknown>[]> {
  return (await textLines(program, "json")).map((line) => JSON.parse(line));
}

const ROWS: [property: string, value: string, shown: unknown][] = [
  ["an error with its text", "new RangeError('too far')", expect.stringContaining("RangeError: too far")],
  ["a large number", "2n ** 70n", "1180591620717411303424"],
  ["text over several lines in one", "'a\\nb\\u2028c'", "a\nb\u2028c"],
  ["half a character", "'\\ud800'", "\ud800"],
];

test.each(ROWS)("a JSON line shows %s", async (_what, value, shown) => {
  const lines = await linesOf(`log("smtp").info("said", { value: ${value} });`);
  expect(lines).toEqual([
    { time: expect.any(String), level: "info", room: "smtp", message: "said", value: shown },
  ]);
});

test("a property cannot replace one of the line's own", async () => {
  const [line] = await linesOf(
    `log("smtp").warn("said", { level: "debug", message: "x", time: 0, room: "y" });`,
  );
  expect(line).toEqual({
    time: expect.stringMatching(/Z$/),
    level: "warning",
    room: "smtp",
    message: "said",
  });
});

test("a value that cannot be shown does not lose the line", async () => {
  const lines = await linesOf(
    `const a = {}; a.a = a; log("smtp").error("said", { a }); log("smtp").info("next");`,
  );
  expect(lines.map(({ message }) => message)).toEqual(["said", "next"]);
  expect(lines[0]?.unprintable).toContain("TypeError");
});

const PRETTY_ROWS: [property: string, value: string, shown: string][] = [
  ["a text as it is", "'a b'", "value=a b"],
  ["an error with its text", "new RangeError('too far')", "RangeError: too far"],
  ["a large number", "2n ** 70n", "1180591620717411303424"],
  ["text over several lines in one", "'a\\nb'", "value=a%0Ab"],
  ["a command to the terminal as text", "'a\\x1b[2J\\x9b2J'", "value=a%1B[2J%C2%9B2J"],
  ["a value with a reference to itself", "(() => { const a = {}; a.a = a; return a; })()", "unprintable: "],
  ["an absent value", "undefined", "value=undefined"],
];

test.each(PRETTY_ROWS)("a line for a person shows %s", async (_what, value, shown) => {
  const lines = await textLines(`log("smtp").info("said", { value: ${value} });`, "pretty");
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {4}smtp {5}said /);
  expect(lines[0]).toContain(shown);
});
