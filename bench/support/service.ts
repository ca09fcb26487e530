import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DkimChoice } from "../../src/core/domains/dkim-keys.ts";
import { publish, type ShownRecord, startDns, type TestDns } from "../../test/support/dns.ts";
import { freePort } from "../../test/support/redis.ts";
import { type Child, startChild } from "./children.ts";
import { profileFolder, slowDiskMs } from "./options.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");
const READY = "Postrider is running.";
export const DOMAIN = "bench.example";

/** The service as a separate process, with its production settings for log and durability. */
export interface Service {
  child: Child;
  url: string;
  httpPort: number;
  smtpPort: number;
}

/**
 * Starts the service on a data folder. With `--profile=FOLDER` it writes a CPU profile there.
 * @param wrapper words before its command
 */
export async function startService(
  folder: string,
  env: Record<string, string>,
  wrapper: readonly string[] = [],
): Promise<Service> {
  const [httpPort, smtpPort] = [freePort(), freePort()];
  const profile = profileFolder();
  const child = await startChild(
    [
      ...wrapper,
      ...slowDisk(),
      process.execPath,
      ...(profile === null ? [] : ["--cpu-prof", "--cpu-prof-dir", profile]),
      MAIN,
      "serve",
    ],
    {
      ready: READY,
      // Next to the folder, so that a copy of the folder does not contain output of an earlier process.
      log: `${folder}-service-${httpPort}`,
      cwd: folder,
      env: {
        HOST: "127.0.0.1",
        PORT: String(httpPort),
        SMTP_HOST: "127.0.0.1",
        SMTP_PORT: String(smtpPort),
        DATA_DIR: folder,
        SERVICE_DOMAIN: "mail.test",
        DELIVERY: "capture",
        // Like `npm start` and the image: the heap is collected as on a small machine.
        BUN_JSC_forceRAMSize: "400000000",
        ...env,
      },
    },
  );
  return { child, url: `http://127.0.0.1:${httpPort}`, httpPort, smtpPort };
}

/** The strace command that simulates a disk with slow fsyncs. Other calls cost nothing extra. */
function slowDisk(): string[] {
  const ms = slowDiskMs();
  if (ms === null) return [];
  // With -D the tracer is a grandchild, so the process that is started and measured is the service.
  const quiet = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
  const [traced, delay] = ["fsync,fdatasync", ms * 1000];
  return [...quiet, "-e", `trace=${traced}`, "-e", `inject=${traced}:delay_exit=${delay}`];
}

/** A data folder with a project, a verified domain that receives, and an inbox. */
export interface Prepared {
  folder: string;
  /** The project's API key. */
  key: string;
  accountKey: string;
  inbox: string;
}

/**
 * Makes the data folder that every run of a bench copies. Its domain has these DKIM keys. `env` may name another database
 * than the folder's file.
 */
export async function prepareData(
  parent: string,
  dkimKeys: DkimChoice = "rsa",
  env: Record<string, string> = {},
): Promise<Prepared> {
  const folder = join(parent, `prepared-${dkimKeys}`);
  mkdirSync(folder, { recursive: true });
  const dns = await startDns();
  const service = await startService(folder, { ROLES: "api", DNS_SERVERS: dns.address, ...env });
  try {
    const key = /project key +(pr_\S+)/.exec(service.child.output())?.[1] ?? "";
    const accountKey = /account-wide key +(\S+)/.exec(service.child.output())?.[1] ?? "";
    const inbox = await prepareDomain(service, dns, { key, dkimKeys });
    return { folder, key, accountKey, inbox };
  } finally {
    await service.child.end();
    dns.stop();
  }
}

interface DomainAnswer {
  id: string;
  status: string;
  records: ShownRecord[];
}

async function prepareDomain(
  service: Service,
  dns: TestDns,
  { key, dkimKeys }: { key: string; dkimKeys: DkimChoice },
): Promise<string> {
  const call = async (method: string, path: string, body?: unknown): Promise<DomainAnswer> => {
    const response = await fetch(`${service.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    // The part of the API's answer that this function needs.
    return (await response.json()) as DomainAnswer;
  };
  const made = await call("POST", "/v1/domains", { domain: DOMAIN, dkimKeys });
  publish(dns, made.records);
  const verified = await call("POST", `/v1/domains/${made.id}/verify`);
  if (verified.status !== "verified") throw new Error(`the domain is ${verified.status}`);
  const receiving = await call("PATCH", `/v1/domains/${made.id}/receiving`, { enabled: true });
  publish(dns, receiving.records);
  const address = `in@${DOMAIN}`;
  await call("POST", "/v1/inboxes", { address });
  return address;
}
