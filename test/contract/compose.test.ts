import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RedisClient } from "bun";
import { newFolder } from "../support/folder.ts";
import { freePort } from "../support/redis.ts";
import { until } from "../support/poll.ts";

const ROOT = join(import.meta.dir, "../..");

interface Service {
  mem_limit?: string;
  logging?: { options?: Record<string, string> };
  ports?: string[];
  entrypoint?: string[];
  environment?: Record<string, string>;
}
const text = readFileSync(join(ROOT, "compose.yaml"), "utf8");
const { services } = Bun.YAML.parse(text) as { services: Record<string, Service> };

test("the API is published on this machine alone, and each container's memory has a limit", () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Compose fills the variable in.
  const published = "${API_ADDRESS:-127.0.0.1}:3000:3000";
  expect(services.postrider?.ports?.filter((port) => port.endsWith(":3000"))).toEqual([published]);
  for (const service of Object.values(services)) expect(service.mem_limit).toMatch(/^\d+[mg]$/);
});

test("each container's log has a limit", () => {
  for (const { logging } of Object.values(services))
    expect(logging?.options).toEqual({ "max-size": "10m", "max-file": "5" });
});

test("mail is taken at port 25, and at the README's 2525 on this machine alone", () => {
  const mail = services.postrider?.ports?.filter((port) => port.endsWith(":2525"));
  expect(mail).toEqual(["0.0.0.0:25:2525", "127.0.0.1:2525:2525"]);
});

test.each([
  ["443", "TLS_PORT"],
  ["587", "SUBMISSION_PORT"],
  ["465", "SUBMISSIONS_PORT"],
  ["53", "DNS_PORT"],
])("port %s is a comment that names the port of %s", (published, setting) => {
  const inner = new RegExp(`# - "0\\.0\\.0\\.0:${published}:(\\d+)`).exec(text)?.[1];
  expect(text).toContain(`${setting}=${inner}`);
});

test("the unit limits memory, and keeps the first keys out of the journal", () => {
  const unit = readFileSync(join(ROOT, "deploy/postrider.service"), "utf8");
  expect(unit).toMatch(/^MemoryMax=\d+G$/m);
  expect(unit).toMatch(/^Environment=FIRST_KEYS_FILE=\/var\/lib\/postrider\//m);
});

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Runs the entrypoint of the Redis container with this machine's Redis, in the folder. */
function startRedis(access: string, port: number): () => Promise<unknown> {
  const [shell = "", flags = "", script = ""] = services.redis?.entrypoint ?? [];
  const here = script
    .replaceAll("$$", "$")
    .replaceAll("/access", access)
    .replace("docker-entrypoint.sh redis-server", "redis-server")
    .concat(` --port ${port} --bind 127.0.0.1 --dir ${access}`);
  const server = Bun.spawn([shell, flags, here.replace("\n --port", " --port")], { stdout: "ignore" });
  const stop = async () => {
    server.kill();
    await server.exited;
  };
  stops.push(stop);
  return stop;
}

async function ping(url: string): Promise<string> {
  const client = new RedisClient(url, { autoReconnect: false });
  try {
    return String(await client.send("PING", []));
  } catch (error) {
    return String(error);
  } finally {
    client.close();
  }
}

test("Redis takes only the password that it made at its first start", async () => {
  const access = newFolder("access");
  const port = freePort();
  const url = () => readFileSync(join(access, "url"), "utf8").trim();
  const reached = () => url().replace("@redis:6379", `@127.0.0.1:${port}`);
  const stop = startRedis(access, port);
  await until(
    async () => (await Bun.file(join(access, "url")).exists()) && (await ping(reached())) === "PONG",
  );
  const made = url();
  expect(made).toMatch(/^redis:\/\/:[0-9a-f]{48}@redis:6379$/);
  expect(await ping(`redis://127.0.0.1:${port}`)).toContain("NOAUTH");
  await stop();
  startRedis(access, port);
  await until(async () => (await ping(reached())) === "PONG");
  expect(url()).toBe(made);
});
