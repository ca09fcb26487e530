import { expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { freePort } from "../support/redis.ts";
import { captureService, onTerminal, postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

test("readyz is 0 while the service is ready and 1 when it has ended, whatever proxy the environment names", async () => {
  const { service, env, folder } = captureService();
  const proxied: string[] = [];
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      proxied.push(url);
      return new Response("no", { status: 502 });
    },
  });
  const behindProxy = { ...env, HTTP_PROXY: proxy.url.href, http_proxy: proxy.url.href };
  try {
    await service.start();
    const ready = await postrider(["readyz"], behindProxy);
    expect([ready.code, ready.json()]).toMatchObject([
      0,
      [{ ready: true, status: 200, checks: { database: "ok" } }],
    ]);
    expect(await onTerminal(["readyz"], env)).toBe("ready\n");
    // If a service listens on all addresses, it is called on loopback.
    expect((await postrider(["readyz"], { ...env, HOST: "0.0.0.0" })).code).toBe(0);
    await service.terminate();
    const gone = await postrider(["readyz"], behindProxy);
    expect([gone.code, gone.json()]).toMatchObject([
      1,
      [{ ready: false, reason: expect.stringContaining("ECONNREFUSED") }],
    ]);
    expect(proxied).toEqual([]);
  } finally {
    await proxy.stop(true);
    await service.remove();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("readyz is 1 and names the failed check if the service says that it is not ready", async () => {
  const checks = { database: "ok", redis: "failed" };
  const fake = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ status: "unavailable", checks }, { status: 503 }),
  });
  const env = { HOST: "127.0.0.1", PORT: String(fake.port) };
  try {
    const { code, json } = await postrider(["readyz"], env);
    expect([code, json()]).toEqual([1, [{ ready: false, status: 503, checks }]]);
    expect(await onTerminal(["readyz"], env)).toBe("not ready: redis\n");
  } finally {
    await fake.stop(true);
  }
});

test("readyz calls an IPv6 address with a valid Host header (RFC 3986 §3.2.2)", async () => {
  const asked: string[] = [];
  const fake = Bun.serve({
    port: 0,
    hostname: "::1",
    fetch: ({ headers }) => {
      asked.push(headers.get("host") ?? "");
      return Response.json({ checks: {} });
    },
  });
  const env = { PORT: String(fake.port) };
  try {
    for (const HOST of ["::", "::1", "[::1]"])
      expect([HOST, (await postrider(["readyz"], { ...env, HOST })).code]).toEqual([HOST, 0]);
    expect(new Set(asked)).toEqual(new Set([`[::1]:${fake.port}`]));
  } finally {
    await fake.stop(true);
  }
});

test("readyz waits no longer than its time limit for a service that hangs", async () => {
  const accepted: string[] = [];
  const hanging = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (_socket, chunk) => void accepted.push(chunk.toString()) },
  });
  try {
    const env = { HOST: "127.0.0.1", PORT: String(hanging.port) };
    const { code, json } = await postrider(["readyz", "--timeout", "0.3"], env);
    expect([code, json()]).toEqual([1, [{ ready: false, reason: "timeout" }]]);
    expect(accepted.join("")).toStartWith("GET /readyz HTTP/1.1\r\n");
  } finally {
    hanging.stop(true);
  }
});

test.each<[string, string[], Record<string, string>, number, string]>([
  ["an unknown port name", [], { PORT: "0" }, 1, "PORT is 0"],
  ["wrong settings", [], { PORT: "x" }, 78, "PORT"],
  ["an invalid time", ["--timeout", "-1"], {}, 64, "--timeout"],
  ["a time over a minute", ["--timeout", "60.001"], {}, 64, "--timeout"],
  ["an argument", ["x"], {}, 64, "too many arguments: x"],
])("readyz with %s is refused with the reason", async (_case, args, env, code, says) => {
  const ran = await postrider(["readyz", ...args], { PORT: String(freePort()), ...env });
  expect([ran.code, ran.stdout]).toEqual([code, ""]);
  expect(ran.stderr).toContain(says);
});

test("readyz and --help load neither the service nor the database", async () => {
  const loaded = await Bun.build({
    entrypoints: ["main.ts", "commands/readyz.ts"].map((file) => `${import.meta.dir}/../../src/${file}`),
    target: "bun",
    splitting: true,
    packages: "external",
    metafile: true,
  });
  // Imports of a chunk are loaded with it; imports on demand are not.
  const outputs = loaded.metafile?.outputs ?? {};
  const sourcesOf = (path: string, seen = new Set<string>()): string[] => {
    if (seen.has(path)) return [];
    seen.add(path);
    const { inputs = {}, imports = [] } = outputs[path] ?? {};
    const further = imports.filter(({ kind }) => kind === "import-statement");
    return [...Object.keys(inputs), ...further.flatMap((each) => sourcesOf(each.path, seen))];
  };
  const entries = Object.entries(outputs).filter(([, { entryPoint }]) =>
    /(?:src\/main|commands\/readyz)\.ts$/.test(entryPoint ?? ""),
  );
  expect(entries).toHaveLength(2);
  const sources = entries.flatMap(([path]) => sourcesOf(path));
  expect(sources.filter((path) => path.endsWith("src/config.ts"))).not.toEqual([]);
  expect(sources.filter((path) => /src\/(?:app|log|store\/client|flows\/|http\/|smtp\/)/.test(path))).toEqual(
    [],
  );
});
