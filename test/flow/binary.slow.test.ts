import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sdkTarball } from "../../src/wiring/sdk/package.ts";
import { bundleUi } from "../../src/wiring/ui/bundle.ts";
import { BUILD_LIMIT_MS, builtProgram } from "../support/built-program.ts";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { newFolder } from "../support/folder.ts";
import { letterLines, smtpSession } from "../support/mail-in.ts";
import { freePort, startRedis } from "../support/redis.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const ROOT = join(import.meta.dir, "../..");
const READY_POLL_MS = 5;
/** Number of polls, which end within a test's time so that it can show the program's output. */
const MESSAGE_POLLS = 1500;
const MESSAGE_POLL_MS = 10;
const SERVICE_DOMAIN = "mail.test";

/** The program alone, its working folder, and the folder into which it unpacks native code. */
const home = newFolder("binary");
const [cwd, unpacked] = [join(home, "cwd"), join(home, "unpacked")];
let program = "";
const port = freePort();
const smtpPort = freePort();
const url = `http://127.0.0.1:${port}`;

let dns: TestDns;
let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
let said = "";
let key = "";

beforeAll(async () => {
  for (const folder of [cwd, unpacked]) mkdirSync(folder);
  // A file that Bun loads by itself when it runs a script. The program must ignore it.
  writeFileSync(join(cwd, ".env"), "LOG_LEVEL=shout\n");
  writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./no-such-file.ts"]\n');
  dns = await startDns();
  program = await builtProgram();
}, BUILD_LIMIT_MS);

afterAll(async () => {
  child?.kill("SIGKILL");
  await child?.exited;
  dns.stop();
});

function tell(text: string): void {
  process.stderr.write(`binary: ${text}\n`);
}

/** The program's whole environment: not even a PATH. */
const ENV = {
  TMPDIR: unpacked,
  DATA_DIR: join(home, "data"),
  HOST: "127.0.0.1",
  PORT: String(port),
  SMTP_HOST: "127.0.0.1",
  SMTP_PORT: String(smtpPort),
  SERVICE_DOMAIN,
  DELIVERY: "capture",
};

function run(...args: string[]) {
  const { exitCode, stdout } = Bun.spawnSync([program, ...args], { cwd, env: ENV });
  return { code: exitCode, stdout: stdout.toString() };
}

/** Starts the service. Resolves when it is ready and has printed the words. */
async function start(words: string, env: Record<string, string> = {}): Promise<void> {
  said = "";
  const from = performance.now();
  const started = Bun.spawn([program], {
    cwd,
    env: { ...ENV, DNS_SERVERS: dns.address, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  child = started;
  for (const stream of [started.stdout, started.stderr]) void drain(stream);
  while ((await fetch(`${url}/readyz`).catch(() => null))?.status !== 200) {
    if (started.exitCode !== null) throw new Error(`the service ended before it was ready: ${said}`);
    await Bun.sleep(READY_POLL_MS);
  }
  tell(`ready in ${Math.round(performance.now() - from)} ms`);
  while (!said.includes(words)) await Bun.sleep(READY_POLL_MS);
}

async function drain(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) said += decoder.decode(chunk, { stream: true });
}

async function terminate(): Promise<number> {
  child.kill("SIGTERM");
  return child.exited;
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

// biome-ignore lint/suspicious/noExplicitAny: as above.
async function message(id: string, status: string): Promise<any> {
  for (let polls = 0; polls < MESSAGE_POLLS; polls++) {
    const shown = await call("GET", `/v1/emails/${id}`);
    if (shown.status === status) return shown;
    // A client can only poll the record, so the test does the same.
    await Bun.sleep(MESSAGE_POLL_MS);
  }
  throw new Error(`${id} is not ${status}: ${said}`);
}

test("is built together with the licenses of all its parts", () => {
  const parts = readFileSync(`${program}.licenses`, "utf8").split(`\n${"-".repeat(80)}\n\n`);
  const told = (name: string) => parts.find((part) => part.startsWith(`${name} `));
  expect(told("postrider")).toContain(readFileSync(join(ROOT, "LICENSE"), "utf8").trim());
  // Of the program, of each thread, and of the files in a bundle: license, notice, and those of nested packages.
  for (const name of ["elysia", "mailauth", "liquidjs", "preact", "uplot"])
    expect(told(name)).toContain("Permission is hereby granted");
  // The script of the reference page.
  expect(told("@scalar/api-reference")).toContain(": MIT");
  expect(told("Bun")).toContain(Bun.version);
});

test("holds no path of the machine that built it, so that equal sources give equal programs everywhere", () => {
  expect(readFileSync(program).includes(ROOT)).toBe(false);
});

test("prints its version and nothing else", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(run("--version")).toEqual({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^${RegExp.escape(version)}( \\([0-9a-f]{12}\\+?\\))?\n$`)),
  });
  expect(run("readyz").code).toBe(1);
});

test("the first start prints the keys", async () => {
  await start('"It works."}\'');
  key = /project key +(pr_\S+)/.exec(said)?.[1] ?? "";
  expect((await call("GET", "/v1/emails")).data).toEqual([]);
  expect(run("readyz").code).toBe(0);
});

test.skipIf(Bun.which("curl") === null)(
  "the command that the first start prints sends a message",
  async () => {
    const from = said.indexOf("curl ");
    const line = said.slice(from, said.indexOf("}'", from) + 2);
    const { stdout } = Bun.spawnSync(["sh", "-c", line]);
    const shown = await message(JSON.parse(stdout.toString()).id, "delivered");
    expect(shown).toMatchObject({ subject: "Hello from Postrider", to: ["owner@example.com"] });
  },
);

test("receives a message, and authenticates it in its built-in thread", async () => {
  const domain = await call("POST", "/v1/domains", { domain: "in.test" });
  publish(dns, domain.records);
  await call("POST", `/v1/domains/${domain.id}/verify`);
  publish(dns, (await call("PATCH", `/v1/domains/${domain.id}/receiving`, { enabled: true })).records);
  await call("POST", "/v1/inboxes", { address: "a@in.test" });
  dns.add({ name: "client.test", type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
  const session = await smtpSession(smtpPort);
  const letter = { to: "a@in.test", headers: ["Subject: Hi"] };
  const dialogue = [
    "MAIL FROM:<ada@client.test>",
    "RCPT TO:<a@in.test>",
    "DATA",
    `${letterLines(letter).join("\r\n")}\r\n.`,
  ];
  const replies: string[] = [];
  for (const line of dialogue) replies.push((await session.say(line)).slice(0, 3));
  session.end();
  expect(replies).toEqual(["250", "250", "354", "250"]);
  const { data } = await call("GET", "/v1/emails?direction=inbound");
  expect(data).toHaveLength(1);
  const shown = await call("GET", `/v1/emails/${data[0].id}`);
  expect(shown).toMatchObject({ subject: "Hi", auth: { spf: { result: "pass", domain: "client.test" } } });
});

test("renders a template in its other built-in thread, and sends it", async () => {
  const source = { name: "Hello", subject: "Hi {{ name }}", html: "<p>{{ name }}</p>" };
  const { id } = await call("POST", "/v1/templates", source);
  const sent = await call("POST", "/v1/emails", {
    from: { email: `hello@onboarding.${SERVICE_DOMAIN}` },
    to: [{ email: "owner@example.com" }],
    templateId: id,
    data: { name: "<Ada>" },
  });
  expect(await message(sent.id, "delivered")).toMatchObject({
    subject: "Hi <Ada>",
    html: "<p>&lt;Ada&gt;</p>",
  });
});

/** Returns the number of the service's own threads. */
const threads = (): number =>
  readdirSync(`/proc/${child.pid}/task`).filter(
    (thread) => readFileSync(`/proc/${child.pid}/task/${thread}/comm`, "latin1") === "Worker\n",
  ).length;

test.skipIf(!existsSync("/proc/self/task"))("writes a large transaction in its built-in thread", async () => {
  const before = threads();
  const to = Array.from({ length: 50 }, (_, at) => ({ email: `owner+${at}@example.com` }));
  const item = { from: { email: "a@in.test" }, to, subject: "Many", text: "Many" };
  const { data } = await call("POST", "/v1/emails/batch", { emails: Array(20).fill(item) });
  expect(data.map(({ status }: { status: string }) => status)).toEqual(Array(20).fill("queued"));
  expect(threads()).toBe(before + 1);
  // All of them, because later steps compare records that must not change any more.
  for (const { id } of data) expect(await message(id, "delivered")).toMatchObject({ subject: "Many" });
});

test("serves the reference page completely", async () => {
  const [, path = ""] = /<script src="([^"]+)"/.exec(await (await fetch(`${url}/docs`)).text()) ?? [];
  const served = Buffer.from(await (await fetch(`${url}${path}`)).arrayBuffer());
  const packaged = "node_modules/@scalar/api-reference/dist/browser/standalone.js";
  // A line of ours comes before it.
  expect(served.includes(readFileSync(join(ROOT, packaged)))).toBe(true);
  expect((await call("GET", "/docs/json")).paths).toContainKey("/v1/emails");
});

test("serves the client of its version", async () => {
  const served = await (await fetch(`${url}/sdk.tgz`)).bytes();
  expect(Buffer.from(served).equals(await sdkTarball())).toBe(true);
});

test("serves the dashboard completely, compressed, with the names that a build from the same source gives", async () => {
  const shell = await (await fetch(url, { headers: { accept: "text/html" } })).text();
  const paths = [...shell.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? "");
  const { files } = await bundleUi();
  const atFirst = files.filter(({ later }) => later !== true);
  expect(paths.sort()).toEqual(atFirst.map(({ name }) => `/ui/assets/${name}`).sort());
  for (const { name, gzipped } of files) {
    const sent = await fetch(`${url}/ui/assets/${name}`, { headers: { "accept-encoding": "gzip" } });
    expect(sent.headers.get("content-encoding")).toBe("gzip");
    expect(Buffer.from(await sent.arrayBuffer()).equals(Bun.gunzipSync(await gzipped.bytes()))).toBe(true);
  }
});

const maps = (): string => readFileSync(`/proc/${child.pid}/maps`, "utf8");

// Addons are searched at the paths of the build machine, which exist in a test but not at a user's.
test.skipIf(!existsSync("/proc/self/maps"))("loads no native code except what it unpacked", () => {
  const [addon = ""] = readdirSync(unpacked);
  expect(readdirSync(unpacked)).toHaveLength(1);
  expect(maps()).toContain(join(unpacked, addon));
  expect(maps()).not.toContain("node_modules");
  const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
  tell(`${Math.round(Number(rss) / 1024)} MB resident after a receive`);
});

test("ends cleanly on SIGTERM, and a restart keeps everything and prints no keys", async () => {
  const before = await call("GET", "/v1/emails");
  expect(before.data.length).toBeGreaterThan(0);
  expect(await terminate()).toBe(0);
  await start("Postrider is running.");
  expect(said).not.toContain("pr_");
  expect(await call("GET", "/v1/emails")).toEqual(before);
  expect(readdirSync(unpacked)).toHaveLength(1);
  expect(await terminate()).toBe(0);
  // The folder that it was started in contains only what was there before.
  expect(readdirSync(cwd).sort()).toEqual([".env", "bunfig.toml"]);
});

test("with a Redis, mail passes through the queue there", async () => {
  const redis = await startRedis();
  try {
    await start("Postrider is running.", { REDIS_URL: redis.url });
    const mail = {
      from: { email: `hello@onboarding.${SERVICE_DOMAIN}` },
      to: [{ email: "owner@example.com" }],
      subject: "Queued",
      text: "Hi",
    };
    const { id } = await call("POST", "/v1/emails", mail);
    expect(await message(id, "delivered")).toMatchObject({ subject: "Queued" });
    expect(await redis.command("KEYS", "*:meta")).toContain(":meta");
    expect(await terminate()).toBe(0);
  } finally {
    await redis.stop();
  }
});
