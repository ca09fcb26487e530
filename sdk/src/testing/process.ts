/// <reference types="node" />
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

/** Milliseconds for the service to end by itself. */
const STOP_MS = 10_000;

/** Returns the program and its first arguments. */
export function commandOf(bin = process.env.POSTRIDER_BIN): readonly string[] {
  if (bin) return [bin];
  const find = createRequire(join(process.cwd(), "package.json"));
  try {
    return (find("@postrider/server") as { command: readonly string[] }).command;
  } catch (error) {
    if ((error as { code?: string }).code !== "MODULE_NOT_FOUND") throw error;
  }
  for (let folder = process.cwd(); folder !== dirname(folder); folder = dirname(folder)) {
    const main = resolve(folder, "src/main.ts");
    if (existsSync(main) && nameIn(folder) === "postrider")
      return [join(folder, "node_modules/.bin/bun"), main];
  }
  throw new Error(
    "Postrider is not installed: run `npm install --save-dev @postrider/server`, or set POSTRIDER_BIN",
  );
}

function nameIn(folder: string): unknown {
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: unknown }).name;
}

/** Ports of the service. */
export interface Ports {
  http: number;
  submission: number;
}

/** Waits until the service runs. Its output stays read, so that it never waits for us. */
export function started(child: ChildProcess, timeoutMs: number): Promise<Ports> {
  let said = "";
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`Postrider ${why}:\n${said.slice(-4000)}`));
    const timer = setTimeout(() => fail(`did not start within ${timeoutMs} ms`), timeoutMs);
    child.once("error", (error) => fail(`cannot be started (${error.message})`));
    // At "exit", its last words may not have been read yet.
    child.once("close", (code) => fail(`ended with exit code ${code}`));
    const read = (chunk: Buffer): void => {
      said += chunk.toString();
      const line = said
        .split("\n")
        .find((text) => text.startsWith("{") && text.includes('"message":"started"'));
      if (line === undefined || !said.includes(`${line}\n`)) return;
      clearTimeout(timer);
      for (const stream of [child.stdout, child.stderr]) stream?.off("data", read).resume();
      resolve((JSON.parse(line) as { ports: Ports }).ports);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
  });
}

/** Stops the service, and kills it if that takes too long. */
export function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    child.ref();
    child.kill("SIGTERM");
  });
}
