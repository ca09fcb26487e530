import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { builtProgram } from "../support/built-program.ts";
import { newFolder } from "../support/folder.ts";
import { freePort } from "../support/redis.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

/** Files that the service may have open, and a number of connections above that. */
const LIMIT = 200;
const CONNECTIONS = 250;
/** Milliseconds in which the shortage is logged once. */
const LOOKS_MS = 2_500;

let folder: string;
let ports: { http: number; smtp: number };
let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
let sockets: Socket[];
/** Log lines so far, and a promise of the first error among them. */
let lines: Record<string, unknown>[];
let failed: PromiseWithResolvers<void>;

beforeEach(async () => {
  folder = newFolder("command");
  ports = { http: freePort(), smtp: freePort() };
  [sockets, lines, failed] = [[], [], Promise.withResolvers<void>()];
  child = Bun.spawn(["sh", "-c", `ulimit -n ${LIMIT}; exec "$@"`, "sh", await builtProgram(), "serve"], {
    env: {
      PATH: Bun.env.PATH ?? "",
      DATA_DIR: folder,
      DELIVERY: "capture",
      HOST: "127.0.0.1",
      PORT: String(ports.http),
      SMTP_HOST: "127.0.0.1",
      SMTP_PORT: String(ports.smtp),
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  void readLog();
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream()))
    if (chunk.includes("Postrider is running.")) break;
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  child.kill();
  await child.exited;
  rmSync(folder, { recursive: true });
});

async function readLog(): Promise<void> {
  let text = "";
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const whole = text.split("\n");
    text = whole.pop() ?? "";
    lines.push(...whole.map((line) => JSON.parse(line)));
    if (lines.some(({ level }) => level === "error")) failed.resolve();
  }
}

/** Opens that many connections. Each resolves with the start of its first answer. */
function flood(port: number): Promise<string>[] {
  return Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    return new Promise<string>((told) => {
      socket.on("error", () => told("error"));
      socket.once("data", (bytes) => told(bytes.toString("latin1", 0, 3)));
    });
  });
}

test("a service without a free file handle logs that once", async () => {
  void flood(ports.http);
  await failed.promise;
  await Bun.sleep(LOOKS_MS);
  expect(lines.filter(({ level }) => level === "error")).toEqual([
    expect.objectContaining({
      message: "no file handles are left, connections are not taken",
      error: "EMFILE",
      limit: LIMIT,
    }),
  ]);
});

test("SMTP sessions leave a quarter of the handles to everything else", async () => {
  const told = await Promise.all(flood(ports.smtp));
  expect(told.filter((code) => code === "220")).toHaveLength(LIMIT * 0.75);
  expect(told.filter((code) => code === "421")).toHaveLength(CONNECTIONS - LIMIT * 0.75);
  const { status } = await fetch(`http://127.0.0.1:${ports.http}/readyz`);
  expect([status, lines.filter(({ level }) => level === "error")]).toEqual([200, []]);
});

test("idle API connections are closed if handles run short", async () => {
  for (let count = 0; count < CONNECTIONS; count++) {
    const socket = connect(ports.http, "127.0.0.1", () =>
      socket.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    );
    socket.on("error", () => undefined);
    sockets.push(socket);
  }
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("data", resolve))));
  const { status } = await fetch(`http://127.0.0.1:${ports.http}/readyz`);
  expect(status).toBe(200);
});
