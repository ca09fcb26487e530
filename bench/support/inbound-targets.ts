/** The servers to which `bench/inbound.ts` sends: the service, its floor, and other mail servers. */
import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { DnsRecord } from "../../test/support/dns.ts";
import { postfix, startPostfix } from "../../test/support/peers/postfix.ts";
import { freePort } from "../../test/support/redis.ts";
import { type Child, startChild } from "./children.ts";
import { copyOf } from "./folder.ts";
import { checkingMissing, startChecking } from "./postfix-checking.ts";
import { familyOf, processorOf } from "./process-family.ts";
import { type Prepared, startService } from "./service.ts";

/** A server that takes mail, started for one run. */
export interface Target {
  port: number;
  pid: number;
  /** The part of the messages that it gets because it is slow; left out: all. */
  share?: number;
  /** Processor time so far, microseconds. */
  processor: () => number;
  /** Ends it. Resolves with the number of messages that it has taken. */
  end: () => Promise<number>;
}

/** A server to measure: its name, and how to start it. */
export type Kind = readonly [name: string, start: () => Promise<Target>];

/** Copies the data folder and subscribes the project to incoming mail. */
export async function subscribed(prepared: Prepared): Promise<Prepared> {
  const folder = copyOf(prepared.folder);
  const { child, url } = await startService(folder, { ROLES: "api" });
  const response = await fetch(`${url}/v1/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${prepared.key}`, "content-type": "application/json" },
    body: JSON.stringify({ url: "https://hooks.bench.example/in", eventTypes: ["inbound_received"] }),
  });
  if (!response.ok) throw new Error(`a webhook was answered with ${await response.text()}`);
  await child.end();
  return { ...prepared, folder };
}

/** Counts messages that went the whole way: the sender passed its checks, and a push waits. */
const TAKEN_WHOLLY = `SELECT count(*) AS n FROM messages m JOIN message_content c ON c.message_id = m.id
  WHERE m.direction = 'inbound' AND m.status = 'delivered' AND c.auth ->> '$.dmarc.result' = 'pass'
    AND c.auth ->> '$.dkim[0].result' IS ?
    AND m.id IN (SELECT message_id FROM webhook_deliveries)`;

/**
 * Starts the service with only its SMTP role: pushes are stored and wait for a worker, which is another process.
 * @param processes how many share its port and its database
 */
export function service(
  prepared: Prepared,
  dnsServers: string,
  { signed, processes }: { signed: boolean; processes: number },
): Kind {
  return [
    processes === 1 ? "inbound" : `inbound, ${processes} processes`,
    async () => {
      const folder = copyOf(prepared.folder);
      const port = freePort();
      const env = { ROLES: "smtp", DNS_SERVERS: dnsServers, SMTP_PORT: String(port), SMTP_PORT_SHARED: "1" };
      const children: Child[] = [];
      for (let n = 0; n < processes; n++) children.push((await startService(folder, env)).child);
      return databaseTarget(children, port, join(folder, "postrider.db"), TAKEN_WHOLLY, [
        signed ? "pass" : null,
      ]);
    },
  ];
}

/** Starts a listener that knows six replies, and commits the bytes of each message in a group. */
export function bareListener(home: string): Kind {
  return [
    "bare listener, group commit",
    async () => {
      const folder = join(home, `floor-${Bun.randomUUIDv7()}`);
      mkdirSync(folder);
      const [file, port] = [join(folder, "floor.db"), freePort()];
      const script = join(import.meta.dir, "floor-inbound.ts");
      const child = await startChild([process.execPath, script, file, String(port)], {
        ready: "ready",
        log: join(folder, "floor"),
      });
      return databaseTarget([child], port, file, "SELECT count(*) AS n FROM mails", []);
    },
  ];
}

function databaseTarget(
  children: readonly Child[],
  port: number,
  file: string,
  sql: string,
  bindings: (string | null)[],
): Target {
  return {
    port,
    pid: children[0]?.pid ?? 0,
    processor: () => children.reduce((sum, child) => sum + child.processor(), 0),
    async end() {
      await Promise.all(children.map((child) => child.end()));
      using database = new Database(file, { readonly: true });
      return database.query<{ n: number }, (string | null)[]>(sql).get(...bindings)?.n ?? 0;
    },
  };
}

/** Starts Debian's Postfix, which takes all mail to its hold queue, one file each, and delivers none. */
export function postfixHold(): Kind[] {
  if (postfix.missing !== null) return missing("Postfix", postfix.missing);
  const settings = {
    mynetworks: "127.0.0.0/8",
    smtpd_client_restrictions: "check_client_access static:HOLD",
    // Half of the process limit without it, fewer than `--sessions` may name.
    smtpd_client_connection_count_limit: "0",
    smtpd_tls_security_level: "none",
    // By default Postfix slows its input until it delivers, which never happens here.
    in_flow_delay: "0",
  };
  const start = async (): Promise<Target> => {
    const server = await startPostfix(settings);
    return {
      port: server.port,
      pid: server.pid,
      processor: () => processorOf(familyOf(server.pid)),
      async end() {
        const held = readdirSync(join(server.folder, "queue/hold")).length;
        await server.stop();
        return held;
      },
    };
  };
  return [["Postfix, hold queue", start]];
}

/** Starts Postfix with SPF, DKIM and DMARC checks, which is what the service does with a message. */
export function postfixChecking(home: string, records: readonly DnsRecord[]): Kind[] {
  const why = checkingMissing();
  if (why !== null) return missing("Postfix with checks", why);
  return [["Postfix with SPF, OpenDKIM and OpenDMARC", () => startChecking(home, records)]];
}

/** Starts nodemailer's smtp-server, under Bun and under node. */
export function smtpServers(home: string): Kind[] {
  const library = installed("smtp-server");
  if (library === null) return missing("smtp-server", "it is not installed");
  const node = Bun.which("node");
  return [
    smtpServer("smtp-server on Bun, nothing stored", [process.execPath], library, home),
    ...(node === null
      ? missing("smtp-server on node", "node is not on the PATH")
      : [smtpServer("smtp-server on node, nothing stored", [node], library, home)]),
  ];
}

function installed(library: string): string | null {
  try {
    return Bun.resolveSync(library, import.meta.dir);
  } catch {
    return null;
  }
}

function smtpServer(name: string, runtime: readonly string[], library: string, home: string): Kind {
  const start = async (): Promise<Target> => {
    const port = freePort();
    const script = join(import.meta.dir, "floor-smtp-server.mjs");
    const child = await startChild([...runtime, script, library, String(port)], {
      ready: "ready",
      log: join(home, `smtp-server-${Bun.randomUUIDv7()}`),
    });
    return {
      port,
      pid: child.pid,
      processor: child.processor,
      async end() {
        await child.end();
        return Number(/taken (\d+)/.exec(child.output())?.[1]);
      },
    };
  };
  return [name, start];
}

function missing(name: string, why: string): Kind[] {
  console.error(`${name} is left out: ${why}`);
  return [];
}
