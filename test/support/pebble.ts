import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, toolMissing } from "./dns-tools.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { answers } from "./peers/peer.ts";
import { freePort } from "./redis.ts";
import { type KeyAndCert, makeCa, makeCert } from "./tls.ts";

/** A request as the CA gets it. */
export interface CaRequest {
  method: string;
  /** Path below the CA's root. */
  path: string;
  body: string;
}

/** Returns an answer of the test instead of the CA's, or null for the CA's own. */
export type Fault = (request: CaRequest) => Response | null | Promise<Response | null>;

/** Debian's pebble, a certificate authority for tests, with a server in front of it that tests can make fail. */
export interface Pebble {
  /** URL of its directory, as clients use it. */
  directory: string;
  /** PEM of the authority of its certificate, for ACME_CA_FILE. */
  ca: string;
  caFile: string;
  /** All requests so far. */
  requests: CaRequest[];
  /** Replaces answers from now on. If null, pebble answers all. */
  fault(fault: Fault | null): void;
  /** Changes the CA's answers, such as their Date header, from now on. */
  rewrite(change: ((request: CaRequest, response: Response) => Response | Promise<Response>) | null): void;
  /** The clock that the Date header of its answers shows; null for the system's. */
  clock(now: (() => number) | null): void;
  /** PEM of the root of the certificates that it issues. It is another one after a restart. */
  root(): Promise<string>;
  /** Kills it and starts it again. It has forgotten every account and order. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export const PEBBLE_MISSING = toolMissing("pebble", "openssl");

/** A key that the CA wants accounts to be bound to. */
export const EXTERNAL = {
  kid: "kid-1",
  hmacKey: "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
};

interface Ports {
  acme: number;
  management: number;
}

export interface PebbleOptions {
  /** Port of the name server that it asks, on loopback. */
  dnsPort: number;
  /** True if accounts must be bound to `EXTERNAL`. */
  external?: boolean;
  /** Share of good nonces that it refuses, percent. */
  badNonces?: number;
}

/** Starts pebble. It checks without pauses and never takes a proof from an earlier order. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const folder = newFolder("pebble");
  const authority = await makeCa();
  const tls = await makeCert(["127.0.0.1", "localhost"], authority);
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, authority.cert);
  const ports = { acme: freePort(), management: freePort() };
  const config = writeConfig(folder, tls, ports, options);
  const start = () => launch(config, ports, options);
  let child = await start();
  const requests: CaRequest[] = [];
  let fault: Fault | null = null;
  let rewrite: Parameters<Pebble["rewrite"]>[0] = null;
  let clock: Parameters<Pebble["clock"]>[0] = null;
  const front = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls,
    async fetch(raw) {
      const { pathname } = new URL(raw.url);
      const request = { method: raw.method, path: pathname, body: await raw.text() };
      requests.push(request);
      const own = await fault?.(request);
      if (own) return own;
      const response = await forward(ports.acme, raw, request.body);
      if (clock !== null) response.headers.set("date", new Date(clock()).toUTCString());
      return rewrite === null ? response : rewrite(request, response);
    },
  });
  return {
    directory: `https://127.0.0.1:${front.port}/dir`,
    ca: authority.cert,
    caFile,
    requests,
    fault: (next) => {
      fault = next;
    },
    rewrite: (next) => {
      rewrite = next;
    },
    clock: (now) => {
      clock = now;
    },
    root: async () => (await insecure(`https://127.0.0.1:${ports.management}/roots/0`)).text(),
    async restart() {
      child.kill();
      await child.exited;
      child = await start();
    },
    async stop() {
      await front.stop(true);
      child.kill();
      await child.exited;
      removeFolder(folder);
    },
  };
}

function writeConfig(
  folder: string,
  tls: KeyAndCert,
  ports: Ports,
  { external = false }: PebbleOptions,
): string {
  const files = { certificate: join(folder, "cert.pem"), privateKey: join(folder, "key.pem") };
  writeFileSync(files.certificate, tls.cert);
  writeFileSync(files.privateKey, tls.key);
  const config = join(folder, "pebble.json");
  const pebble = {
    listenAddress: `127.0.0.1:${ports.acme}`,
    managementListenAddress: `127.0.0.1:${ports.management}`,
    ...files,
    httpPort: 5002,
    tlsPort: 5001,
    externalAccountBindingRequired: external,
    externalAccountMACKeys: { [EXTERNAL.kid]: EXTERNAL.hmacKey },
  };
  writeFileSync(config, JSON.stringify({ pebble }));
  return config;
}

async function launch(config: string, ports: Ports, { dnsPort, badNonces = 0 }: PebbleOptions) {
  const child = Bun.spawn(["pebble", "-strict", "-config", config, "-dnsserver", `127.0.0.1:${dnsPort}`], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: {
      ...process.env,
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_AUTHZREUSE: "0",
      PEBBLE_WFE_NONCEREJECT: String(badNonces),
    },
  });
  await spoken(child.stdout, "Listening on");
  // Pebble says that it listens just before it does.
  for (const port of Object.values(ports))
    if (!(await answers("127.0.0.1", port, child))) throw new Error(`pebble does not answer at port ${port}`);
  return child;
}

/** Resolves once the words were printed, and reads on, because a full pipe would stop the program. */
function spoken(stream: ReadableStream<Uint8Array<ArrayBuffer>>, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    void (async () => {
      let seen = "";
      for await (const chunk of stream) {
        seen = (seen + Buffer.from(chunk).toString()).slice(-10_000);
        if (seen.includes(words)) resolve();
      }
      reject(new Error(`pebble ended: ${seen}`));
    })();
  });
}

/** The CA puts the host of a request into its URLs, so it must see the one that clients use. */
async function forward(port: number, raw: Request, body: string): Promise<Response> {
  const headers = new Headers(raw.headers);
  const response = await insecure(`https://127.0.0.1:${port}${new URL(raw.url).pathname}`, {
    method: raw.method,
    headers,
    redirect: "manual",
    ...(raw.method === "POST" ? { body } : {}),
  });
  return new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers });
}

function insecure(url: string, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...init, tls: { rejectUnauthorized: false } } as BunFetchRequestInit);
}

/** A problem document of the CA. */
export function problem(
  status: number,
  type: string,
  detail: string,
  headers: Record<string, string> = {},
): Response {
  return new Response(JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail, status }), {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}

/** Verifies a chain with openssl, as a foreign program. Returns what it prints. */
export async function verifyChain(chain: string, root: string): Promise<string> {
  const folder = newFolder("chain");
  const paths = { chain: join(folder, "chain.pem"), root: join(folder, "root.pem") };
  writeFileSync(paths.chain, chain);
  writeFileSync(paths.root, root);
  const { output } = await run([
    "openssl",
    "verify",
    "-CAfile",
    paths.root,
    "-untrusted",
    paths.chain,
    paths.chain,
  ]);
  removeFolder(folder);
  return output.trim();
}
