import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { publish, type ShownRecord } from "../support/dns.ts";
import { consoleCommands, type DocStep, docPages, docSteps, readPage } from "../support/doc-page.ts";
import { newFolder } from "../support/folder.ts";
import { startService, type TestService } from "../support/service.ts";

/** Milliseconds: a page starts some dozens of programs. */
setDefaultTimeout(90_000);

const ROOT = join(import.meta.dir, "../..");
const MAIN = join(ROOT, "src/main.ts");
/** Programs of the pages. If one of them is missing, the commands are not run. */
const PROGRAMS = ["bash", "curl", "swaks", "sqlite3"];
const lacking = PROGRAMS.filter((program) => Bun.which(program) === null);

/** Pages that a reader follows step by step: each has commands to run. */
const TASKS = [
  "send",
  "receive",
  "webhooks",
  "live",
  "agents",
  "domains",
  "install",
  "dns",
  "operate",
  "incidents",
  "settings",
  "migrate",
  "troubleshoot",
];
/**
 * Programs that need Docker, systemd, a registry or root. Commands of any other program belong in an `sh` block.
 */
const NOT_RUN = [
  "apt",
  "docker",
  "editor",
  "sha256sum",
  "npm",
  "cat",
  "install",
  "systemctl",
  "journalctl",
  "set",
];

/** Runs before the commands of each step. If a status is 400 or more, the step fails. */
const PRELUDE = `set -euo pipefail
curl() { command curl --fail-with-body --no-progress-meter "$@"; }
postrider() { "$BUN" "$MAIN" "$@"; }
`;
/** Number of times that a read-only step is repeated until it prints the expected text. */
const MAX_TRIES = 200;

const pages = await docPages();
const stepsOf = new Map(await Promise.all(pages.map(async (page) => [page, await docSteps(page)] as const)));
const pagesWithSteps = pages.filter((page) => stepsOf.get(page)?.length !== 0);
const running: TestService[] = [];
afterAll(async () => {
  await Promise.all(running.map((service) => service.stop()));
});

/** One reader who works through one page. */
interface Reader {
  service: TestService;
  folder: string;
  /** The last printed id of each kind, by its prefix. */
  ids: Map<string, string>;
}

async function newReader(): Promise<Reader> {
  const service = await startService({
    SERVICE_DOMAIN: "postrider.localhost",
    SUBMISSION_PORT: "0",
    SUBMISSION_HOST: "127.0.0.1",
    // As a first start without settings, which captures mail from any domain.
    CAPTURE_STRICT: "0",
  });
  running.push(service);
  return { service, folder: newFolder("docs"), ids: new Map() };
}

/** Replaces the values that a reader replaces with those of this run. */
function filledIn(text: string, { service, ids }: Reader): string {
  return text
    .replaceAll("http://localhost:3000", service.url)
    .replaceAll("http://localhost:9464", `http://127.0.0.1:${service.app.ports.metrics}`)
    .replaceAll("localhost:2525", `127.0.0.1:${service.smtpPort}`)
    .replaceAll("localhost:1025", `127.0.0.1:${service.app.ports.submission}`)
    .replaceAll("/var/lib/postrider", service.folder)
    .replaceAll("ACCOUNT_KEY=pr_…", `ACCOUNT_KEY=${service.accountKey}`)
    .replaceAll("pr_…", service.projectKey)
    .replace(/\b([a-z]{3})_…/g, (placeholder, prefix) => ids.get(prefix) ?? placeholder);
}

async function run(reader: Reader, script: string): Promise<{ code: number; output: string }> {
  const { service, folder } = reader;
  const state = `${folder}/.state`;
  const restore = existsSync(state) ? `. ${state}\n` : "";
  const child = Bun.spawn(["bash", "-c", `${restore}${PRELUDE}${script}\nexport -p >${state}`], {
    cwd: folder,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: {
      PATH: `${Bun.env.PATH}:/usr/sbin`,
      HOME: folder,
      BUN: process.execPath,
      MAIN,
      DATA_DIR: service.folder,
      HOST: "127.0.0.1",
      PORT: new URL(service.url).port,
      SMTP_PORT: String(service.smtpPort),
      DNS_SERVERS: service.dns.address,
    },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output: stdout + stderr };
}

function remember({ ids }: Reader, output: string): void {
  for (const [id, prefix = ""] of output.matchAll(/\b([a-z]{3})_[0-9a-z]{26}\b/g)) ids.set(prefix, id);
}

/** Does the page's work outside the commands: adds the records of an answer to the DNS. */
function publishRecords({ service }: Reader, output: string): void {
  for (const [, list = "[]"] of output.matchAll(/"records":(\[\{.*?\}\])/g))
    publish(service.dns, JSON.parse(list) as ShownRecord[]);
}

async function follow(reader: Reader, { at, script, expected }: DocStep): Promise<void> {
  const onlyReads = !/--json|-X|swaks|postrider|sqlite3|export/.test(script);
  const lacks = (output: string) => expected.filter((pattern) => !pattern.test(output));
  let ran = await run(reader, filledIn(script, reader));
  for (let tries = 1; onlyReads && tries < MAX_TRIES && lacks(ran.output).length > 0; tries++)
    ran = await run(reader, filledIn(script, reader));
  expect(ran.code, `${at}\n${script}\n${ran.output}`).toBe(0);
  expect(lacks(ran.output), `${at}\n${script}\n${ran.output}`).toEqual([]);
  remember(reader, ran.output);
  publishRecords(reader, ran.output);
}

describe("the documentation", () => {
  test.skipIf(lacking.length > 0).each(pagesWithSteps)(
    "the commands of %s work and print what it says",
    async (page) => {
      const reader = await newReader();
      for (const step of stepsOf.get(page) ?? []) await follow(reader, step);
    },
  );

  test.each(TASKS)("docs/%s.md has commands to run and says what they print", (task) => {
    const steps = stepsOf.get(`docs/${task}.md`) ?? [];
    expect(steps.filter(({ expected }) => expected.length > 0)).not.toBeEmpty();
  });

  test.each(pages)("the console blocks of %s have only commands that cannot be run here", async (page) => {
    const programs = (await consoleCommands(page)).map((command) => /^\S+/.exec(command)?.[0] ?? "");
    expect(programs.filter((program) => !NOT_RUN.includes(program))).toEqual([]);
  });

  test.each(pages)("the links of %s lead to files and headings that exist", async (page) => {
    const broken: string[] = [];
    for (const [, target = ""] of (await readPage(page)).matchAll(/\]\((?!https?:)([^)]+)\)/g))
      if (!(await exists(page, target))) broken.push(target);
    expect(broken).toEqual([]);
  });
});

async function exists(page: string, target: string): Promise<boolean> {
  const [file = "", heading] = target.split("#");
  const path = file === "" ? page : join(dirname(page), file);
  if (!existsSync(join(ROOT, path))) return false;
  if (heading === undefined) return true;
  return [...(await readPage(path)).matchAll(/^#+ (.*)$/gm)].some(
    ([, text = ""]) => anchor(text) === heading,
  );
}

/** The anchor that GitHub gives a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, "")
    .replaceAll(" ", "-");
}
