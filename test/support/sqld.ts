import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastingFolder, removeFolder } from "./folder.ts";
import { freePort } from "./redis.ts";
import { type SlowLink, startSlowLink } from "./slow-link.ts";

/** The path of sqld, the real libSQL server. Tests that need it are skipped if the variable is not set. */
export const SQLD = Bun.env.SQLD ?? null;
if (SQLD !== null && !existsSync(SQLD)) throw new Error(`SQLD names no file: ${SQLD}`);

/** The reason why tests on a real server are skipped; null if they run. */
export const NO_SQLD = SQLD === null ? "set SQLD=/path/to/sqld" : null;

/** Options of a server. */
export interface SqldOptions {
  /** Asks every request for a JWT, which is in `token`. */
  auth?: boolean;
  /** Clients reach it over a link with this round trip, milliseconds. */
  roundTripMs?: number;
  /** If true, which is the default, each commit is on disk before its answer. sqld's own default does not wait for the disk. */
  durable?: boolean;
  /** Address that it listens on; 127.0.0.1 if absent. */
  host?: string;
  /** Words before the command, for a namespace of the network. */
  inside?: readonly string[];
}

/** A running sqld on files that outlive it. */
export interface Sqld {
  url: string;
  /** The token of its clients; null without `auth`. */
  token: string | null;
  folder: string;
  /** Its database file, which other programs may read while it runs. */
  file: string;
  pid(): number;
  /** The link to its clients; null if it adds no round trip. */
  link: SlowLink | null;
  /** Kills it at once, as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again on the same port and files. */
  restart(): Promise<void>;
  /** Freezes the server: connections stay open and get no answers. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const READY_POLL_MS = 10;
const NAMESPACE = "default";

/** Starts a server on an empty folder. */
export async function startSqld(options: SqldOptions = {}): Promise<Sqld> {
  if (SQLD === null) throw new Error(`no sqld: ${NO_SQLD}`);
  const folder = lastingFolder("sqld");
  const host = options.host ?? HOST;
  const [port, admin] = [freePort(), freePort()];
  const direct = `http://${host}:${port}`;
  const signer = options.auth === true ? generateKeyPairSync("ed25519") : null;
  const token = signer === null ? null : tokenOf(signer.privateKey);
  const command = [
    ...(options.inside ?? []),
    SQLD,
    "--no-welcome",
    "--db-path",
    join(folder, "data.sqld"),
    "--http-listen-addr",
    `${host}:${port}`,
    "--admin-listen-addr",
    `${host}:${admin}`,
  ];
  if (signer !== null) {
    const keyFile = join(folder, "jwt.pem");
    writeFileSync(keyFile, signer.publicKey.export({ type: "spki", format: "pem" }));
    command.push("--auth-jwt-key-file", keyFile);
  }
  const launch = async (): Promise<Bun.Subprocess> => {
    const child = Bun.spawn(command, {
      cwd: folder,
      env: { PATH: Bun.env.PATH ?? "", RUST_LOG: "off" },
      stdio: ["ignore", "ignore", "inherit"],
    });
    await untilHealthy(direct, child);
    if (options.durable !== false) await syncEachCommit(`http://${host}:${admin}`);
    return child;
  };
  let child = await launch();
  const killNow = (): void => child.kill("SIGKILL");
  process.on("exit", killNow);
  const kill = async (): Promise<void> => {
    killNow();
    await child.exited;
  };
  const { roundTripMs = 0 } = options;
  const link = roundTripMs > 0 ? await startSlowLink({ host, port, roundTripMs }) : null;
  return {
    url: link === null ? direct : `http://${HOST}:${link.port}`,
    token,
    folder,
    file: join(folder, "data.sqld/dbs", NAMESPACE, "data"),
    pid: () => child.pid,
    link,
    kill,
    async restart() {
      await kill();
      child = await launch();
    },
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    async stop() {
      link?.stop();
      await kill();
      process.off("exit", killNow);
      removeFolder(folder);
    },
  };
}

async function untilHealthy(url: string, child: Bun.Subprocess): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const answer = await fetch(`${url}/health`).catch(() => null);
    if (answer?.ok === true) return;
    await Bun.sleep(READY_POLL_MS);
  }
  throw new Error(`sqld ended with ${child.exitCode ?? child.signalCode}`);
}

/** Makes connections that are opened from now on wait for the disk at each commit. */
async function syncEachCommit(admin: string): Promise<void> {
  const answer = await fetch(`${admin}/v1/namespaces/${NAMESPACE}/config`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ block_reads: false, block_writes: false, durability_mode: "strong" }),
  });
  if (!answer.ok) throw new Error(`sqld refuses its configuration: ${answer.status} ${await answer.text()}`);
}

/** Returns a token that may read and write everything, and never ends. */
function tokenOf(key: KeyObject): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "EdDSA", typ: "JWT" })}.${part({ a: "rw" })}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}
