/// <reference types="node" />
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Postrider } from "./client.ts";
import { commandOf, ended, type Ports, started } from "./testing/process.ts";
import { HOST, patternOf, projectOf, type TestProject } from "./testing/project.ts";

export type { CapturedMessage, MessageFilter, TestEvents, TestProject } from "./testing/project.ts";

// The real service inside a test, for teams that would otherwise mock their mail. Without it they would start the program,
// find its ports and poll its lists themselves, which is where such tests become slow and flaky.

/** How to start the service. */
export interface TestOptions {
  /** Path of the program. Default: `POSTRIDER_BIN`, else the package `@postrider/server`, else a clone above the current folder. */
  bin?: string;
  /** Further settings. */
  env?: Readonly<Record<string, string>>;
  /** Milliseconds for the start. Default: 30 000. */
  timeoutMs?: number;
}

/** The failure that the next deliveries meet. */
export interface Failure {
  /** The recipients that fail. Default: all. */
  to?: string | RegExp;
  stage: "connect" | "mail" | "rcpt" | "data";
  /** The receiver's reply, such as `451 4.7.1 try later`. 4xx is tried again, 5xx bounces. */
  reply: string;
  /** Number of attempts that fail. Default: 1. */
  times?: number;
}

/** A time to go forward. Units add up. */
export interface Advance {
  ms?: number;
  seconds?: number;
  minutes?: number;
  hours?: number;
  days?: number;
}

/** The running service and its first project. */
export interface TestService extends TestProject {
  /** Makes a further project. */
  project(name: string): Promise<TestProject>;
  /** Makes the next deliveries fail. */
  failNext(failure: Failure): Promise<void>;
  /** Sets the service's clock forward: retries and scheduled messages come due. */
  advance(by: Advance): Promise<void>;
  /** Ends the service and removes its folder. */
  stop(): Promise<void>;
}

const START_MS = 30_000;
const SECOND_MS = 1000;
const UNITS = { ms: 1, seconds: SECOND_MS, minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const;

/**
 * Starts the real service on free ports, with an empty database in a temporary folder. All mail is captured. The service ends
 * with this process, even if it is killed.
 */
export async function startPostrider(options: TestOptions = {}): Promise<TestService> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-test-"));
  const [program = "", ...args] = commandOf(options.bin);
  const child = spawn(program, [...args, "serve"], {
    cwd: folder,
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH ?? "", ...settingsOf(folder), ...options.env },
  });
  try {
    const ports = await started(child, options.timeoutMs ?? START_MS);
    return serviceOf(child, folder, ports);
  } catch (error) {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

function settingsOf(folder: string): Record<string, string> {
  return {
    DATA_DIR: join(folder, "data"),
    FIRST_KEYS_FILE: join(folder, "keys"),
    DELIVERY: "capture",
    HOST,
    PORT: "0",
    SMTP_HOST: HOST,
    SMTP_PORT: "0",
    SUBMISSION_HOST: HOST,
    SUBMISSION_PORT: "0",
    SUBMISSION_INSECURE_LOOPBACK: "1",
    TEST_CONTROLS: "1",
    // The application under test takes its webhooks on this machine.
    ALLOW_PRIVATE_WEBHOOKS: "1",
    LOG_FORMAT: "json",
    LOG_LEVEL: "info",
  };
}

function serviceOf(child: ChildProcess, folder: string, ports: Ports): TestService {
  // Nothing of the service keeps the test's process alive.
  for (const part of [child, child.stdin, child.stdout, child.stderr])
    (part as { unref?: () => void } | null)?.unref?.();
  const keys = readFileSync(join(folder, "keys"), "utf8");
  const keyOf = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(keys)?.[1] ?? "";
  const place = { url: `http://${HOST}:${ports.http}`, port: ports.submission };
  const accountKey = keyOf("POSTRIDER_ACCOUNT_KEY");
  const account = new Postrider({ apiKey: accountKey, baseUrl: place.url });
  const ending = new AbortController();
  const steer = (method: string, path: string, body?: object) =>
    steered(place.url + path, accountKey, method, body);
  const parts = { place, signal: ending.signal };
  const first = projectOf(parts, keyOf("POSTRIDER_PROJECT_KEY"));
  return {
    ...first,
    async reset() {
      await first.reset();
      await steer("DELETE", "/test/failures");
    },
    async project(name) {
      const { id } = await account.senders.create({ name, plan: "unlimited", trustTier: "unlimited" });
      const { secret } = await account.apiKeys.create({ name, senderId: id });
      return projectOf(parts, secret);
    },
    async failNext({ to, ...failure }) {
      await steer("POST", "/test/failures", {
        ...failure,
        ...(to === undefined ? {} : { to: patternOf(to) }),
      });
    },
    async advance(by) {
      const given = Object.entries(by) as [keyof typeof UNITS, number][];
      const ms = given.reduce((sum, [unit, count]) => sum + UNITS[unit] * count, 0);
      await steer("POST", "/test/clock", { ms: Math.round(ms) });
    },
    async stop() {
      ending.abort();
      await ended(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends a request of the test controls, which no other program has. */
async function steered(url: string, key: string, method: string, body?: object): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}
