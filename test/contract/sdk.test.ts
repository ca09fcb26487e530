import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildSdk } from "../../scripts/sdk-build.ts";
import { GENERATOR, sdkTypes, TYPES_FILE, typesOf } from "../../scripts/sdk-types.ts";
import { startFaultyServer, type FaultyServer } from "../support/faulty-server.ts";
import { newFolder, removeFolder } from "../support/folder.ts";
import { startService, type TestService } from "../support/service.ts";

const SDK = join(import.meta.dir, "../../sdk");
const PACKAGES = join(SDK, "node_modules");
const START_MS = 60_000;
const RUN_MS = 60_000;
setDefaultTimeout(RUN_MS);
const SERVICE_DOMAIN = "postrider.localhost";

/** The needs of the SDK's suite. */
interface Scene {
  url: string;
  projectKey: string;
  accountKey: string;
  senderId: string;
  domain: string;
  faulty: string;
  push: { body: string; header: string; secret: string };
}
type Result = { name: string; error?: string };

let service: TestService;
let faulty: FaultyServer;
let scene: Scene;
beforeAll(async () => {
  await buildSdk();
  service = await startService({ SERVICE_DOMAIN });
  faulty = await startFaultyServer();
  const { url, projectKey, accountKey } = service;
  const senderId: string = (await service.call("GET", "/v1/me")).body.project.id;
  const push = await pushedBounce();
  scene = { url, projectKey, accountKey, senderId, domain: SERVICE_DOMAIN, faulty: faulty.url, push };
}, START_MS);
afterAll(async () => {
  faulty.stop();
  await service.stop();
});

/** Returns a webhook request as the service has sent it. */
async function pushedBounce(): Promise<Scene["push"]> {
  const { promise, resolve } = Promise.withResolvers<{ body: string; header: string }>();
  const endpoint = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      resolve({ body: await request.text(), header: request.headers.get("service-signature") ?? "" });
      return new Response();
    },
  });
  const webhook = { url: endpoint.url.href, eventTypes: ["*"] };
  const { body: made } = await service.call("POST", "/v1/webhooks", webhook);
  await service.call("POST", `/v1/webhooks/${made.id}/test`, { type: "bounce" });
  const request = await promise;
  await service.call("DELETE", `/v1/webhooks/${made.id}`);
  await endpoint.stop(true);
  return { ...request, secret: made.signingSecret };
}

async function ranBy(command: readonly string[]): Promise<Result[]> {
  const child = Bun.spawn([...command, join(SDK, "test/run.mjs"), JSON.stringify(scene)], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (!stdout.startsWith("[")) throw new Error(`${command[0]}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as Result[];
}

/** Runs the suite in workerd, on which Cloudflare Workers run. */
async function ranByWorkerd(): Promise<Result[]> {
  const folder = newFolder("worker");
  try {
    const { outputs } = await Bun.build({
      entrypoints: [join(SDK, "test/worker.mjs")],
      target: "browser",
      format: "esm",
    });
    const script = (await outputs[0]?.text()) ?? "";
    const { Miniflare } = await import(join(PACKAGES, "miniflare/dist/src/index.js"));
    const worker = new Miniflare({ modules: true, script, compatibilityDate: "2026-01-01", cf: false });
    try {
      const answer = await worker.dispatchFetch("http://worker.test/", {
        method: "POST",
        body: JSON.stringify(scene),
      });
      return (await answer.json()) as Result[];
    } finally {
      await worker.dispose();
    }
  } finally {
    removeFolder(folder);
  }
}

const DENO = join(PACKAGES, `@deno/${process.platform}-${process.arch}-glibc/deno`);
const RUNTIMES: readonly { name: string; isThere: boolean; run: () => Promise<Result[]> }[] = [
  { name: "Bun", isThere: true, run: () => ranBy([process.execPath]) },
  { name: "Node", isThere: Bun.which("node") !== null, run: () => ranBy(["node"]) },
  {
    name: "Deno",
    isThere: existsSync(DENO),
    run: () => ranBy([DENO, "run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env", "--no-config"]),
  },
  { name: "workerd", isThere: existsSync(join(PACKAGES, "miniflare")), run: ranByWorkerd },
];

describe("the SDK", () => {
  for (const { name, isThere, run } of RUNTIMES)
    test.skipIf(!isThere)(
      `passes its suite on ${name}${isThere ? "" : " (skipped: it is not installed)"}`,
      async () => {
        const results = await run();
        expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
        expect(results.length).toBeGreaterThan(15);
      },
    );

  const generates = test.skipIf(!existsSync(GENERATOR));

  generates("has the types of the current document", async () => {
    const document = (await service.call("GET", "/docs/json")).body as object;
    const current = sdkTypes(document);
    expect(await Bun.file(TYPES_FILE).text(), "run: bun scripts/sdk-types.ts").toBe(current);
  });

  test("the SDK has a method for each operation under /v1", async () => {
    const { paths } = (await service.call("GET", "/docs/json")).body as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const operations = Object.entries(paths)
      .filter(([path]) => path.startsWith("/v1/"))
      .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
    const files = [...new Bun.Glob("src/resources/*.ts").scanSync({ cwd: SDK, absolute: true })];
    const sources = (await Promise.all(files.map((file) => Bun.file(file).text()))).join("\n");
    const lacking = operations.filter((id) => !new RegExp(`<"${id}">`).test(sources));
    expect(lacking).toEqual([]);
  });
});

test.skipIf(!existsSync(GENERATOR))(
  "a client that openapi-typescript makes of the document compiles and has no unknown",
  async () => {
    const document = (await service.call("GET", "/docs/json")).body as object;
    // The generator itself gives every answer's headers this line.
    const types = typesOf(document).replaceAll("[name: string]: unknown;", "");
    const code = types.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/"[^"\n]*"/g, '""');
    expect(code.split("\n").filter((line) => /\b(?:unknown|any)\b/.test(line))).toEqual([]);
    const folder = newFolder("client");
    await Bun.write(join(folder, "client.ts"), types);
    const tsc = join(SDK, "../node_modules/typescript/bin/tsc");
    const options = ["--noEmit", "--strict", "--types", "", "--ignoreConfig", join(folder, "client.ts")];
    const { stdout, exitCode } = Bun.spawnSync([process.execPath, tsc, ...options]);
    removeFolder(folder);
    expect([stdout.toString(), exitCode]).toEqual(["", 0]);
  },
);
