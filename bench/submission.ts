/**
 * Measures messages accepted per second by SMTP submission, against POST /v1/emails and Postfix with SASL:
 * `bun bench/submission.ts [--profile=FOLDER] [--only=NAME] [--rounds=N] [--json=FILE]`.
 */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { postfix, startPostfix } from "../test/support/peers/postfix.ts";
import { freePort } from "../test/support/redis.ts";
import { startChild } from "./support/children.ts";
import { handOver, rowFigures } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { chosen, domains, rounds } from "./support/options.ts";
import { familyOf, processorOf } from "./support/process-family.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import type { SmtpLoadOptions } from "./support/smtp-load.ts";
import { PROCESSOR, printTable, type Row } from "./support/table.ts";

const CONNECTIONS = 50;
/** Unmeasured time first, because a process that has just started still compiles its code. */
const WARM_MS = 8000;
const MEASURE_MS = 5000;
const SUPPORT = join(import.meta.dir, "support");
const SASLPASSWD = "/usr/sbin/saslpasswd2";
const USER = "bench";
const PASSWORD = "a-password-of-some-length";

const home = benchFolder();
const prepared = await prepareData(home);
const from = `news@${DOMAIN}`;

/** Measures one round. Resolves with its result and the processor time per message, microseconds. */
type Measure = () => Promise<{ result: LoadResult; processor: number }>;

async function load(script: string, options: LoadOptions | SmtpLoadOptions): Promise<LoadResult> {
  const child = await startChild([process.execPath, join(SUPPORT, script), JSON.stringify(options)], {
    log: join(home, `load-${Bun.randomUUIDv7()}`),
  });
  return JSON.parse(await child.finished());
}

const common = { from, connections: CONNECTIONS, domains: domains(), warmMs: WARM_MS, measureMs: MEASURE_MS };

async function submission(chunked: boolean): ReturnType<Measure> {
  const port = freePort();
  const { child } = await startService(copyOf(prepared.folder), {
    ROLES: "smtp",
    SUBMISSION_PORT: String(port),
    SUBMISSION_HOST: "127.0.0.1",
    SUBMISSION_INSECURE_LOOPBACK: "1",
  });
  const before = child.processor();
  const result = await load("smtp-load.ts", { ...common, port, user: "", password: prepared.key, chunked });
  const processor = (child.processor() - before) / result.answered;
  await child.end();
  return { result, processor };
}

async function post(): ReturnType<Measure> {
  const { child, httpPort } = await startService(copyOf(prepared.folder), { ROLES: "api" });
  const before = child.processor();
  const result = await load("http-load.ts", { ...common, port: httpPort, key: prepared.key });
  const processor = (child.processor() - before) / result.answered;
  await child.end();
  return { result, processor };
}

/** Debian's Postfix with logins by Cyrus SASL and sasldb. It takes all mail to its hold queue and delivers none. */
async function postfixWithSasl(chunked: boolean): ReturnType<Measure> {
  const server = await startPostfix({
    smtpd_sasl_auth_enable: "yes",
    smtpd_sasl_type: "cyrus",
    smtpd_sasl_local_domain: DOMAIN,
    smtpd_relay_restrictions: "permit_sasl_authenticated, reject",
    smtpd_client_restrictions: "check_client_access static:HOLD",
    smtpd_tls_security_level: "none",
    // By default Postfix slows its input until it delivers, which never happens here.
    in_flow_delay: "0",
  });
  // Debian's Postfix looks here for the settings of Cyrus SASL.
  const sasl = join(server.folder, "etc/sasl");
  mkdirSync(sasl, { mode: 0o755 });
  const file = join(sasl, "sasldb2");
  writeFileSync(
    join(sasl, "smtpd.conf"),
    `pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: PLAIN LOGIN\nsasldb_path: ${file}\n`,
  );
  const made = Bun.spawnSync([SASLPASSWD, "-p", "-c", "-u", DOMAIN, "-f", file, USER], {
    stdin: Buffer.from(PASSWORD),
  });
  if (made.exitCode !== 0) throw new Error(`saslpasswd2: ${made.stderr}`);
  // Its processes run as other users and need read access.
  chmodSync(file, 0o644);
  process.kill(server.pid, "SIGHUP");
  const processor = () => processorOf(familyOf(server.pid));
  const before = processor();
  const user = `${USER}@${DOMAIN}`;
  const result = await load("smtp-load.ts", {
    ...common,
    port: server.port,
    user,
    password: PASSWORD,
    chunked,
  });
  const used = (processor() - before) / result.answered;
  await server.stop();
  return { result, processor: used };
}

const subjects: [string, Measure][] = [
  ["submission", () => submission(false)],
  ["submission, BDAT", () => submission(true)],
];
const peers: [string, Measure][] = [["POST /v1/emails", post]];
if (postfix.missing === null && existsSync(SASLPASSWD))
  peers.push(
    ["Postfix, SASL, hold queue", () => postfixWithSasl(false)],
    ["Postfix, SASL, hold queue, BDAT", () => postfixWithSasl(true)],
  );
else console.error(`not measured: Postfix (${postfix.missing ?? "sasl2-bin is not installed"})`);

const rows = new Map<string, Row & { more: Record<string, number[]> }>();
for (let round = 0; round < rounds(); round++)
  for (const [name, measure] of chosen([...subjects, ...peers])) {
    const row = rows.get(name) ?? { name, rounds: [], more: { "p50 ms": [], "p99 ms": [], [PROCESSOR]: [] } };
    rows.set(name, row);
    const { result, processor } = await measure();
    row.rounds.push(result.perSecond);
    row.more["p50 ms"]?.push(result.p50);
    row.more["p99 ms"]?.push(result.p99);
    row.more[PROCESSOR]?.push(processor);
  }
const rowsOf = (kinds: [string, Measure][]): Row[] => kinds.flatMap(([name]) => rows.get(name) ?? []);
printTable("msg/s", rowsOf(subjects), rowsOf(peers));
handOver(rowFigures("msg/s", [...rows.values()]));
