import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSdk } from "../../scripts/sdk-build.ts";
import { sdkFiles, sdkTarball } from "../../src/wiring/sdk/package.ts";
import { tarball } from "../../src/wiring/sdk/tarball.ts";
import { newFolder } from "../support/folder.ts";
import { startService } from "../support/service.ts";
import { SIGNATURE_HEADER, signWebhook } from "../../src/core/crypto/webhook-signature.ts";

const ROOT = join(import.meta.dir, "../..");
const SDK = join(ROOT, "sdk");
/** Below the SDK, so that `postrider` is the SDK and its packages are found. */
const FOLDER = join(SDK, "node_modules/.cache/readme");
const START_MS = 30_000;
const RUN_MS = 60_000;
setDefaultTimeout(RUN_MS);
const SECRET = "whsec_test";

interface Example {
  /** The words after the opening fence, such as `webhook hono`. */
  title: string;
  file: string;
}

/** Writes each `ts` block of the SDK's README into a file. */
function writeExamples(): Example[] {
  const page = readFileSync(join(SDK, "README.md"), "utf8");
  return [...page.matchAll(/^```ts ?(.*)\n([\s\S]*?)^```$/gm)].map(([, title = "", code = ""], index) => {
    const file = join(FOLDER, `example-${index}.ts`);
    writeFileSync(file, code);
    return { title, file };
  });
}

const hasPackages = existsSync(join(SDK, "node_modules/hono"));
const withPackages = test.skipIf(!hasPackages);

let examples: Example[] = [];
beforeAll(async () => {
  await buildSdk();
  mkdirSync(FOLDER, { recursive: true });
  examples = writeExamples();
}, START_MS);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

function run(command: readonly string[], cwd = SDK) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, ...command], { cwd });
  return { exitCode, output: stdout.toString() + stderr.toString() };
}

describe("the README of the SDK", () => {
  withPackages("has examples that compile", () => {
    const options = ["--strict", "--noEmit", "--skipLibCheck", "--ignoreConfig", "--target", "ESNext"];
    const modules = ["--module", "NodeNext", "--moduleDetection", "force", "--types", "bun-types"];
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const files = examples.map(({ file }) => file);
    expect(run([tsc, ...options, ...modules, ...files])).toEqual({ exitCode: 0, output: "" });
    expect(files.length).toBeGreaterThan(10);
  });

  withPackages.each(["next", "hono", "express", "elysia"])(
    "has a webhook endpoint for %s that takes an event and refuses an altered one",
    async (framework) => {
      process.env.WEBHOOK_SECRET = SECRET;
      const example = examples.find(({ title }) => title === `webhook ${framework}`);
      const endpoint = await started(await import(example?.file ?? ""));
      try {
        const second = Math.floor(Date.now() / 1000);
        const createdAt = new Date(second * 1000).toISOString();
        const data = { messageId: "msg_1", senderId: "snd_1", occurredAt: createdAt, tags: [] };
        const body = JSON.stringify({ id: "dlv_1", type: "queued", createdAt, data });
        const signature = signWebhook([SECRET], second, body);
        const headers = { "content-type": "application/json", [SIGNATURE_HEADER]: signature };
        const post = async (text: string) =>
          (await fetch(`${endpoint.url}/webhooks`, { method: "POST", headers, body: text })).status;
        expect([await post(body), await post(body.replace("msg_1", "msg_2"))]).toEqual([204, 400]);
      } finally {
        endpoint.stop();
      }
    },
  );
});

type Fetch = (request: Request) => Response | Promise<Response>;
interface Module {
  POST?: Fetch;
  default?: { fetch?: Fetch; listen?: (port: number) => { address(): { port: number }; close(): void } };
}

/** Serves what an example exports: a route handler, an app with `fetch`, or an app of Express. */
async function started({ POST, default: app }: Module): Promise<{ url: string; stop(): void }> {
  const answer = POST ?? app?.fetch;
  if (answer !== undefined) {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(request) });
    return { url: server.url.origin, stop: () => void server.stop(true) };
  }
  const server = app?.listen?.(0);
  if (server === undefined) throw new Error("the example exports no app");
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

describe("the package of the SDK", () => {
  test.skipIf(Bun.which("npm") === null)(
    "the package of the SDK is built by npm pack, and holds the client, its types, README and license, and nothing else",
    () => {
      rmSync(join(SDK, "dist"), { recursive: true });
      const { stdout } = Bun.spawnSync(["npm", "pack", "--dry-run", "--json", "--silent"], { cwd: SDK });
      const [{ files, size }] = JSON.parse(stdout.toString());
      const paths: string[] = files.map(({ path }: { path: string }) => path);
      const others = paths.filter((path) => !/^dist\/(?:esm|cjs)\/[\w/-]+\.d\.ts$/.test(path));
      expect(others.sort()).toEqual([
        "LICENSE",
        "README.md",
        ...["index.js", "package.json", "testing.js"].map((name) => `dist/cjs/${name}`),
        ...["index.js", "package.json", "testing.js"].map((name) => `dist/esm/${name}`),
        "package.json",
      ]);
      expect(size).toBeLessThan(100_000);
      expect(readFileSync(join(SDK, "LICENSE"), "utf8")).toBe(readFileSync(join(ROOT, "LICENSE"), "utf8"));
    },
  );

  test("the package of the SDK has no dependencies, and the version of the service", () => {
    const own = JSON.parse(readFileSync(join(SDK, "package.json"), "utf8"));
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect([own.dependencies, own.peerDependencies, own.version]).toEqual([undefined, undefined, version]);
  });

  withPackages("has types for each way to import it (arethetypeswrong)", () => {
    const { exitCode, output } = run([
      join(SDK, "node_modules/@arethetypeswrong/cli/dist/index.js"),
      "--pack",
      ".",
    ]);
    expect(output).toContain("No problems found");
    expect(exitCode).toBe(0);
  });

  withPackages("has a package.json without faults (publint)", () => {
    const { exitCode, output } = run([join(SDK, "node_modules/publint/src/cli.js"), "--strict"]);
    expect(output).toContain("All good!");
    expect(exitCode).toBe(0);
  });

  test("the package of the SDK is at most 24 kB minified", async () => {
    const { outputs } = await Bun.build({ entrypoints: [join(SDK, "dist/esm/index.js")], minify: true });
    expect(outputs[0]?.size).toBeLessThan(24_000);
  });
});

describe("the client that the service serves", () => {
  test.skipIf(Bun.which("tar") === null)(
    "the client that the service serves has the files of the package, and names no development tool",
    async () => {
      const folder = newFolder("sdk");
      const file = join(folder, "sdk.tgz");
      await Bun.write(file, await sdkTarball());
      expect(Bun.spawnSync(["tar", "xzf", file, "-C", folder]).exitCode).toBe(0);
      const packed = readdirSync(join(folder, "package"), { recursive: true, withFileTypes: true });
      expect(packed.filter((entry) => entry.isFile()).length).toBe((await sdkFiles()).length);
      for (const { path, content } of await sdkFiles())
        expect(readFileSync(join(folder, "package", path), "utf8")).toBe(content as string);
      const { exports, devDependencies, scripts } = JSON.parse(
        readFileSync(join(folder, "package/package.json"), "utf8"),
      );
      expect([Object.keys(exports), devDependencies, scripts]).toEqual([
        [".", "./testing", "./package.json"],
        undefined,
        undefined,
      ]);
    },
  );

  test("the client that the service serves has the same bytes whatever the time and the current folder", async () => {
    const first = await sdkTarball();
    const script = `import { sdkTarball } from ${JSON.stringify(join(ROOT, "src/wiring/sdk/package.ts"))};
      await Bun.write(Bun.stdout, await sdkTarball());`;
    const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { cwd: newFolder("elsewhere") });
    expect(Buffer.from(first).equals(stdout)).toBe(true);
  });

  test("a file of a package whose path is longer than 100 characters is refused", () => {
    const path = "a".repeat(100 - "package/".length);
    expect(tarball([{ path, content: "" }]).length).toBeGreaterThan(0);
    expect(() => tarball([{ path: `${path}a`, content: "" }])).toThrow("longer than 100 characters");
  });

  test("/sdk.tgz gives the client with an ETag, which is answered with 304, and has a HEAD", async () => {
    const service = await startService({});
    try {
      const url = `${service.url}/sdk.tgz`;
      const got = await fetch(url);
      const etag = got.headers.get("etag") ?? "";
      expect([got.status, got.headers.get("content-type")]).toEqual([200, "application/gzip"]);
      expect(Buffer.from(await got.arrayBuffer()).equals(await sdkTarball())).toBe(true);
      const head = await fetch(url, { method: "HEAD" });
      expect([head.status, head.headers.get("etag"), await head.text()]).toEqual([200, etag, ""]);
      if (Bun.which("npm") !== null) {
        const cwd = newFolder("by-url");
        const npm = Bun.spawn(["npm", "install", "--no-audit", "--prefix", cwd, url], {
          cwd,
          stdout: "ignore",
        });
        expect(await npm.exited).toBe(0);
        expect(existsSync(join(cwd, "node_modules/postrider/dist/esm/testing.js"))).toBe(true);
      }
      const again = await fetch(url, { headers: { "if-none-match": etag } });
      expect([again.status, await again.text()]).toEqual([304, ""]);
    } finally {
      await service.stop();
    }
  });
});
