import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { sdkTarball } from "../../src/wiring/sdk/package.ts";
import { type PackageFile, tarball } from "../../src/wiring/sdk/tarball.ts";
import { newFolder } from "../support/folder.ts";
import { installPackages } from "../support/installed.ts";
import { smtpSession } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
const START_MS = 90_000;
setDefaultTimeout(START_MS);

const ROOT = join(import.meta.dir, "../..");
const TOOLS = join(ROOT, "sdk/node_modules");
/** Largest package, compressed, octets. */
const MAX_OCTETS = 4_000_000;
const [port, smtpPort] = [freePort(), freePort()];
const url = `http://127.0.0.1:${port}`;
/** An address of this machine on which port 1025 is free. */
const OWN_HOST = "127.0.10.25";

let files: readonly PackageFile[] = [];
let folder = "";
const home = newFolder("npx");
let child: Bun.Subprocess<"ignore", "pipe", "inherit">;
let said = "";
let key = "";

beforeAll(async () => {
  ({ files, folder } = (await installPackages(join(ROOT, "dist/installed"))).server);
  // Files that Bun loads by itself when it runs a script.
  writeFileSync(join(home, ".env"), "LOG_LEVEL=shout\n");
  writeFileSync(join(home, "bunfig.toml"), 'preload = ["./no-such-file.ts"]\n');
  child = Bun.spawn(["node", join(folder, "postrider.cjs"), "dev"], {
    cwd: home,
    env: {
      PATH: process.env.PATH ?? "",
      HOST: "127.0.0.1",
      PORT: String(port),
      SMTP_HOST: "127.0.0.1",
      SMTP_PORT: String(smtpPort),
      SUBMISSION_HOST: OWN_HOST,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  void read();
  await until(() => said.includes('"It works."}\''));
  key = /project key +(pr_\S+)/.exec(said)?.[1] ?? "";
}, START_MS);
afterAll(async () => {
  child.kill("SIGTERM");
  await child.exited;
});

async function read(): Promise<void> {
  for await (const chunk of child.stdout) said += new TextDecoder().decode(chunk);
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API shows.
async function call(method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
}

/** Returns the first message that the list finds, as soon as it is there. */
async function message(query: string) {
  const { data } = await call("GET", `/v1/emails?wait=60&${query}`);
  return call("GET", `/v1/emails/${data[0].id}`);
}

test("the package of the service holds the bundle, its command and licences, and nothing else", () => {
  const paths = files.map(({ path }) => path);
  expect(paths.filter((path) => !/^dist\/[\w.-]+\.(?:js|gz|tgz|txt)$/.test(path)).sort()).toEqual([
    "LICENSE",
    "LICENSES.txt",
    "README.md",
    "bunfig.toml",
    "index.cjs",
    "index.d.cts",
    "package.json",
    "postrider.cjs",
  ]);
  expect(paths).toContain("dist/main.js");
  expect(tarball(files).length).toBeLessThan(MAX_OCTETS);
});

test("the package of the service depends on the pinned Bun and libSQL alone", () => {
  const { dependencies, version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const own = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  expect([own.version, own.dependencies]).toEqual([
    version,
    { bun: dependencies.bun, libsql: dependencies.libsql },
  ]);
  const built = readdirSync(join(folder, "dist")).filter((name) => name.endsWith(".js"));
  const texts = built.map((name) => readFileSync(join(folder, "dist", name), "utf8")).join("\n");
  expect(texts.includes(ROOT)).toBe(false);
});

test.skipIf(Bun.which("npm") === null)("npm packs every file of the package of the service", () => {
  const { stdout } = Bun.spawnSync(["npm", "pack", "--dry-run", "--json", "--silent"], { cwd: folder });
  const [packed] = JSON.parse(stdout.toString());
  expect(packed.files.map(({ path }: { path: string }) => path).sort()).toEqual(
    files.map(({ path }) => path).sort(),
  );
});

test.skipIf(!existsSync(TOOLS)).each([
  ["publint", "publint/src/cli.js", "--strict", "All good!"],
  ["arethetypeswrong", "@arethetypeswrong/cli/dist/index.js", "--format=ascii", "No problems found"],
])("%s finds no fault in the package of the service", async (_, tool, option, says) => {
  const file = join(home, "server.tgz");
  await Bun.write(file, tarball(files));
  const { stdout, stderr } = Bun.spawnSync([process.execPath, join(TOOLS, tool), file, option]);
  unlinkSync(file);
  expect(stdout.toString() + stderr.toString()).toContain(says);
});

test("npx @postrider/server dev in a folder starts the service and prints a link", async () => {
  expect(said).toMatch(/^Open http:\/\/localhost:\d+\/start#\w{32}$/m);
  expect(readdirSync(home).sort()).toEqual([".env", "bunfig.toml", "data"]);
});

test("npx @postrider/server dev captures what a program sends to port 1025", async () => {
  const mailer = createTransport({ host: OWN_HOST, port: 1025, ignoreTLS: true });
  const letter = { from: "cron@host.example", to: "ana@example.net", subject: "Nightly", text: "Done." };
  await mailer.sendMail(letter);
  expect(await message("status=delivered&to=ana@example.net")).toMatchObject({
    subject: "Nightly",
    status: "delivered",
  });
});

test("the package of the service has each worker thread: rendering, large transactions, arriving mail", async () => {
  const address = "help@inbox.postrider.localhost";
  const { id: templateId } = await call("POST", "/v1/templates", {
    name: "Hi",
    subject: "Hi {{ name }}",
    text: "x",
  });
  const from = "hello@mysaas.example";
  await call("POST", "/v1/emails", { from, to: "bo@example.net", templateId, data: { name: "Bo" } });
  expect(await message("status=delivered&to=bo@example.net")).toMatchObject({ subject: "Hi Bo" });
  const to = Array.from({ length: 50 }, (_, at) => `many-${at}@example.net`);
  const { data } = await call("POST", "/v1/emails/batch", {
    emails: Array(20).fill({ from, to, subject: "Many", text: "x" }),
  });
  expect(data.map(({ status }: { status: string }) => status)).toEqual(Array(20).fill("queued"));
  await call("POST", "/v1/inboxes", { address });
  const session = await smtpSession(smtpPort);
  const lines = [
    "MAIL FROM:<ada@client.test>",
    `RCPT TO:<${address}>`,
    "DATA",
    "From: ada@client.test\r\nSubject: Arrived\r\n\r\nHi\r\n.",
  ];
  const replies: string[] = [];
  for (const line of lines) replies.push((await session.say(line)).slice(0, 3));
  session.end();
  expect(replies).toEqual(["250", "250", "354", "250"]);
  expect(await message("direction=inbound")).toMatchObject({ subject: "Arrived" });
});

test("the package of the service serves the dashboard and the reference page completely", async () => {
  const pages = await Promise.all(
    ["/", "/docs"].map(async (path) =>
      (await fetch(url + path, { headers: { accept: "text/html" } })).text(),
    ),
  );
  const paths = pages.flatMap((page) =>
    [...page.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css|svg))"/g)].map(([, path]) => path ?? ""),
  );
  expect(paths.length).toBeGreaterThan(2);
  for (const path of paths) {
    const answer = await fetch(url + path);
    expect([path, answer.status, (await answer.bytes()).length > 100]).toEqual([path, 200, true]);
  }
});

test("the package of the service serves the client of its version", async () => {
  const served = await (await fetch(`${url}/sdk.tgz`)).bytes();
  expect(Buffer.from(served).equals(await sdkTarball())).toBe(true);
});

test("a command of the package works next to the running service", async () => {
  const run = Bun.spawnSync(["node", join(folder, "postrider.cjs"), "--version"], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "" },
  });
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(run.stdout.toString()).toStartWith(version);
  const none = Bun.spawnSync(["node", join(folder, "postrider.cjs"), "no-such"], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "" },
  });
  expect(none.exitCode).toBe(64);
});

test("the package of the service finds Bun where no install script has linked it", () => {
  const place = newFolder("unlinked");
  const own = join(place, "node_modules/@postrider/server");
  cpSync(join(folder, "index.cjs"), join(own, "index.cjs"));
  const [bun, real] = [join(place, "node_modules/bun"), join(place, "node_modules/@oven/bun-here")];
  for (const each of [bun, real]) mkdirSync(join(each, "bin"), { recursive: true });
  writeFileSync(join(bun, "bin/bun.exe"), "placeholder");
  writeFileSync(
    join(bun, "package.json"),
    '{"optionalDependencies":{"@oven/bun-elsewhere":"1","@oven/bun-here":"1"}}',
  );
  writeFileSync(join(real, "package.json"), "{}");
  cpSync(process.execPath, join(real, "bin/bun"));
  const print = "process.stdout.write(require('@postrider/server').command[0])";
  const asked = () => Bun.spawnSync(["node", "-e", print], { cwd: place, stderr: "pipe" });
  writeFileSync(join(own, "package.json"), '{"main":"index.cjs"}');
  expect(asked().stdout.toString()).toBe(join(real, "bin/bun"));
  writeFileSync(join(real, "bin/bun"), "");
  expect(asked().stderr.toString()).toContain("holds no program for this platform");
});

test("npx @postrider/server dev ends cleanly on SIGTERM", async () => {
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});
