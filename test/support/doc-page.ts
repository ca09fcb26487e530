import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** One or more commands of a page, up to the next text that they must print. */
export interface DocStep {
  /** Place for messages: `docs/send.md:12`. */
  at: string;
  script: string;
  /** Patterns that the output must match, in any order. */
  expected: readonly RegExp[];
}

/** One fenced block of a page. */
interface Block {
  language: string;
  line: number;
  lines: readonly string[];
}

/** A line that begins with this is part of the output of the commands above it; `…` matches anything. */
const OUTPUT = "# → ";

/** Paths of the pages: the README and docs/. */
export async function docPages(): Promise<string[]> {
  const pages = await Array.fromAsync(new Bun.Glob("docs/*.md").scan({ cwd: ROOT }));
  return ["README.md", ...pages.sort()];
}

export async function readPage(path: string): Promise<string> {
  return Bun.file(join(ROOT, path)).text();
}

/** The commands of the page's `sh` blocks, which a reader can paste and a test runs. */
export async function docSteps(path: string): Promise<DocStep[]> {
  const blocks = fencedBlocks(await readPage(path)).filter(({ language }) => language === "sh");
  return blocks.flatMap((block) => stepsOf(path, block));
}

/** The commands of the page's `console` blocks, without their prompt: they need Docker, systemd or root. */
export async function consoleCommands(path: string): Promise<string[]> {
  const blocks = fencedBlocks(await readPage(path)).filter(({ language }) => language === "console");
  return blocks.flatMap(({ lines }) => lines.map((line) => line.replace(/^[$#] /, "")));
}

/** The settings files that the page shows whole, in its `env` blocks, each as names and values. */
export async function envFiles(path: string): Promise<Record<string, string>[]> {
  const blocks = fencedBlocks(await readPage(path)).filter(({ language }) => language === "env");
  return blocks.map(({ lines }) =>
    Object.fromEntries(
      lines.filter((line) => !line.startsWith("#")).map((line) => line.split(/=(.*)/).slice(0, 2)),
    ),
  );
}

function fencedBlocks(page: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; line: number; lines: string[] } | null = null;
  for (const [index, text] of page.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(text);
    if (fence === null) open?.lines.push(text);
    else if (open === null) open = { language: fence[1] ?? "", line: index + 1, lines: [] };
    else {
      blocks.push(open);
      open = null;
    }
  }
  return blocks;
}

function stepsOf(path: string, { line, lines }: Block): DocStep[] {
  const steps: { at: string; commands: string[]; expected: RegExp[] }[] = [];
  for (const [index, text] of lines.entries()) {
    const last = steps.at(-1);
    if (text.startsWith(OUTPUT)) last?.expected.push(outputPattern(text.slice(OUTPUT.length)));
    else if (last === undefined || last.expected.length > 0)
      steps.push({ at: `${path}:${line + 1 + index}`, commands: [text], expected: [] });
    else last.commands.push(text);
  }
  return steps.map(({ at, commands, expected }) => ({ at, script: commands.join("\n"), expected }));
}

function outputPattern(text: string): RegExp {
  return new RegExp(text.split("…").map(RegExp.escape).join("[\\s\\S]*?"));
}
