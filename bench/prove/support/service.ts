/**
 * The service as a process that a run kills, freezes and traces, on files and ports that outlive it, with its
 * surroundings.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type EmptyDatabase, emptyDatabase } from "../../../test/support/database.ts";
import { publish, startDns, type TestDns } from "../../../test/support/dns.ts";
import { benchFolder } from "../../support/folder.ts";
import { residentMemory } from "../../support/peak-memory.ts";
import { type HookSink, type MailSink, type MailSinkOptions, startHookSink, startMailSink } from "./sink.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const READY_POLL_MS = 20;
const READY_LIMIT_MS = 60_000;
/**
 * Ports of the service, below those that the kernel gives to clients. A client could take one of those between two
 * lives.
 */
const FIRST_PORT = 20_000;
const PORTS = 12_000;
const PORT_TRIES = 100;
const CALL_LIMIT_MS = 30_000;

/** An answer of the API. `body` is null if it is not JSON. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a run reads whatever the API shows.
  body: any;
}

/** Options for the start of one life of the process. */
export interface Launch {
  env?: Record<string, string>;
  /** Command that runs the service, for example `strace`. The started process must be the service. */
  wrap?: readonly string[];
  /** File that Bun loads before the service. */
  preload?: string;
}

/** The process. Its ports, its folder and its key are the same in each life. */
export interface ProvedService {
  url: string;
  httpPort: number;
  smtpPort: number;
  /** The data folder: `postrider.db` and its WAL. */
  folder: string;
  /** Key of the first project; "" before the first life is ready. */
  key: string;
  pid(): number;
  /** True while the process runs. */
  alive(): boolean;
  /** Starts it. Resolves when `/readyz` says 200. Throws with its last words if it ends before that. */
  start(launch?: Launch): Promise<void>;
  /** Ends it like a power cut. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code. */
  terminate(): Promise<number>;
  /** Resident memory, bytes. */
  memory(): number;
  /** Its output of all lives. */
  said(): string;
  /** Calls the API with the project's key. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

/** Returns a port without a listener that the kernel gives to no client. */
export function steadyPort(): number {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // It is taken: try the next one.
    }
  }
  throw new Error("no port is free");
}

/**
 * Makes a service that is not started yet. `env` overrides settings fit for a run: no limits of rate or quota,
 * loopback allowed.
 */
function provedService(home: string, env: Record<string, string> & { DATA_DIR: string }): ProvedService {
  const [httpPort, smtpPort] = [steadyPort(), steadyPort()];
  const url = `http://127.0.0.1:${httpPort}`;
  const log = join(home, "service.log");
  let child: Bun.Subprocess | null = null;
  const killNow = (): void => child?.kill("SIGKILL");
  process.on("exit", killNow);
  const said = (): string => (existsSync(log) ? readFileSync(log, "utf8") : "");
  const service: ProvedService = {
    url,
    httpPort,
    smtpPort,
    folder: env.DATA_DIR,
    key: "",
    pid: () => child?.pid ?? 0,
    alive: () => child !== null && child.exitCode === null && child.signalCode === null,
    async start({ env: over = {}, wrap = [], preload } = {}) {
      // Both streams go into one file, after the output of earlier lives.
      const out = openSync(log, "a");
      const command = [
        process.execPath,
        ...(preload === undefined ? [] : ["--preload", preload]),
        MAIN,
        "serve",
      ];
      child = Bun.spawn([...wrap, ...command], {
        cwd: home,
        stdin: "ignore",
        stdout: out,
        stderr: out,
        env: {
          PATH: Bun.env.PATH ?? "",
          // Like `npm start`: the heap is collected as on a small machine.
          BUN_JSC_forceRAMSize: "400000000",
          HOST: "127.0.0.1",
          PORT: String(httpPort),
          SMTP_HOST: "127.0.0.1",
          SMTP_PORT: String(smtpPort),
          SERVICE_DOMAIN: "mail.test",
          DELIVERY: "mx",
          DESTINATION_RATE: "0",
          ALLOW_PRIVATE_MX: "1",
          ALLOW_PRIVATE_WEBHOOKS: "1",
          ...env,
          ...over,
        },
      });
      closeSync(out);
      await untilReady(service);
      if (service.key === "") service.key = /project key +(pr_\S+)/.exec(said())?.[1] ?? "";
    },
    async kill() {
      killNow();
      await child?.exited;
    },
    async terminate() {
      child?.kill("SIGTERM");
      return (await child?.exited) ?? 0;
    },
    memory: () => residentMemory(service.pid()),
    said,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        signal: AbortSignal.timeout(CALL_LIMIT_MS),
        headers: {
          authorization: `Bearer ${service.key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = response.headers.get("content-type")?.startsWith("application/json");
      return { status: response.status, body: json ? JSON.parse(text) : null };
    },
  };
  return service;
}

/** Returns the last words of a process that says too much for an error. */
const LAST_WORDS = 2000;

async function untilReady(service: ProvedService): Promise<void> {
  const until = performance.now() + READY_LIMIT_MS;
  while (service.alive() && performance.now() < until) {
    const answer = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(CALL_LIMIT_MS) }).catch(
      () => null,
    );
    if (answer?.status === 200) return;
    await Bun.sleep(READY_POLL_MS);
  }
  throw new Error(`the service did not become ready: ${service.said().slice(-LAST_WORDS)}`);
}

/** Domain that runs send from and receive at, its one inbox, and the endpoint that gets all events. */
export const DOMAIN = "prove.test";
export const FROM = `news@${DOMAIN}`;
export const INBOX = `in@${DOMAIN}`;
export const HOOK = "all";
/** Domains of the recipients, each with an address record of the sink: `there0.test` to `there19.test`. */
export const RECIPIENT_DOMAINS = 20;
/** Event types of the endpoint. */
export const EVENTS: readonly string[] = ["queued", "delivery", "inbound_received"];

/** A running service and its surroundings: all on loopback, and all gone with the process. */
export interface Ground {
  /** The run's own folder, on a disk. */
  home: string;
  dns: TestDns;
  sink: MailSink;
  hooks: HookSink;
  service: ProvedService;
  /** The place of the service's data: a file, or what `TEST_ENGINE` names. */
  database: EmptyDatabase;
  /** The file in which all writes end. */
  file: string;
  /** Ends the service and its surroundings. The folder goes with the process. */
  stop(): Promise<void>;
}

export interface GroundOptions {
  /** Settings that override those of `provedService`. */
  env?: Record<string, string>;
  sink?: MailSinkOptions;
  launch?: Launch;
  /** If true, which is the default, the endpoint `HOOK` is made. */
  hook?: boolean;
}

/**
 * Starts everything: DNS, sink and endpoints, and the service with a verified domain that receives, an inbox and a
 * webhook.
 */
export async function startGround(options: GroundOptions = {}): Promise<Ground> {
  endOnSignals();
  const home = benchFolder();
  const dns = await startDns();
  const sink = startMailSink(options.sink);
  const hooks = startHookSink();
  for (let n = 0; n < RECIPIENT_DOMAINS; n++)
    dns.add({ name: `there${n}.test`, type: "A", data: "127.0.0.1" });
  const folder = options.env?.DATA_DIR ?? join(home, "data");
  mkdirSync(folder, { recursive: true });
  const database = await emptyDatabase(folder);
  if (database.file === null) throw new Error("a run needs TEST_ENGINE=file, sqld or sqld-replica");
  const around = { DNS_SERVERS: dns.address, SMTP_OUT_PORT: String(sink.port), DATA_DIR: folder };
  const service = provedService(home, { ...around, ...database.env, ...options.env });
  await service.start(options.launch);
  await prepare(service, dns);
  if (options.hook !== false)
    await expectOk(service, "POST", "/v1/webhooks", { url: hooks.url(HOOK), eventTypes: EVENTS });
  return {
    home,
    dns,
    sink,
    hooks,
    service,
    database,
    file: database.file,
    async stop() {
      await service.kill();
      await database.stop();
      sink.stop();
      hooks.stop();
      dns.stop();
    },
  };
}

/** An interrupted run cleans up like one that ends by itself. */
function endOnSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
}

/** Registers the domain, publishes its records, verifies it, lets it receive and makes the inbox. */
async function prepare(service: ProvedService, dns: TestDns): Promise<void> {
  const made = await expectOk(service, "POST", "/v1/domains", { domain: DOMAIN });
  publish(dns, made.records);
  const verified = await expectOk(service, "POST", `/v1/domains/${made.id}/verify`);
  if (verified.status !== "verified") throw new Error(`the domain is ${verified.status}`);
  const receiving = await expectOk(service, "PATCH", `/v1/domains/${made.id}/receiving`, { enabled: true });
  publish(dns, receiving.records);
  await expectOk(service, "POST", "/v1/inboxes", { address: INBOX });
}

/** Calls the API and returns the answer's body. Throws if the status is not 2xx. */
export async function expectOk(
  service: ProvedService,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer["body"]> {
  const answer = await service.call(method, path, body);
  if (answer.status >= 200 && answer.status < 300) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}
