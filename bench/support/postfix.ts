/**
 * Measures Debian's Postfix, with and without OpenDKIM, which takes messages from smtp-source and relays them to the
 * sink.
 */
import { generateKeyPairSync } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compose } from "../../src/mail/composing/compose.ts";
import { answers } from "../../test/support/peers/peer.ts";
import { postfix, startPostfix } from "../../test/support/peers/postfix.ts";
import { freePort } from "../../test/support/redis.ts";
import { HTML, TEXT } from "./message.ts";
import { familyOf, processorOf, statOf } from "./process-family.ts";

const SMTP_SOURCE = "/usr/sbin/smtp-source";
const OPENDKIM = "/usr/sbin/opendkim";
const POLL_MS = 50;
const DOMAIN = "bench.example";

export interface PostfixOptions {
  /** Folder for its files. */
  home: string;
  sinkPort: number;
  /** Messages relayed before the measured ones. */
  warm: number;
  count: number;
  /** Sessions in and out. */
  connections: number;
  /** Whether OpenDKIM signs as a milter. */
  signing: boolean;
  limitMs: number;
}

export interface PostfixResult {
  perSecond: number;
  /** Bytes of all its processes; pages that they share count once. */
  memory: number;
  /** Microseconds per message, of all its processes. */
  processor: number;
}

/** Returns why this cannot be measured here; null if it can. */
export function postfixMissing(): string | null {
  if (postfix.missing !== null) return postfix.missing;
  return existsSync(OPENDKIM) && existsSync(SMTP_SOURCE) ? null : "opendkim or smtp-source is not installed";
}

/** Relays the messages. Measures from the end of the warm-up to the last message at the sink. */
export async function relayThroughPostfix(options: PostfixOptions): Promise<PostfixResult> {
  const home = join(options.home, `postfix-${Bun.randomUUIDv7()}`);
  mkdirSync(home);
  const signer = options.signing ? await startOpenDkim(home) : null;
  const server = await startPostfix({
    mynetworks: "127.0.0.0/8",
    relayhost: `[127.0.0.1]:${options.sinkPort}`,
    default_destination_concurrency_limit: String(options.connections),
    initial_destination_concurrency: String(options.connections),
    smtp_tls_security_level: "none",
    ...(signer === null
      ? {}
      : { smtpd_milters: `inet:127.0.0.1:${signer.port}`, milter_default_action: "tempfail" }),
  });
  const pids = (): number[] => [server.pid, ...(signer === null ? [] : [signer.pid])].flatMap(familyOf);
  const source = offer(home, server.port, options);
  const fine = (): boolean => source.exitCode === null || source.exitCode === 0;
  const reached = async (count: number) => {
    const sent = await relayed(join(server.folder, "maillog"), { count, limitMs: options.limitMs }, fine);
    return { sent, at: performance.now(), processor: processorOf(pids()) };
  };
  const warm = await reached(options.warm);
  const all = await reached(options.warm + options.count);
  const mails = all.sent - warm.sent;
  const seconds = (all.at - warm.at) / 1000;
  const processor = (all.processor - warm.processor) / mails;
  const memory = pids().reduce((sum, pid) => sum + memoryOf(pid), 0);
  await server.stop();
  signer?.stop();
  return { perSecond: mails / seconds, memory, processor };
}

interface Signer {
  port: number;
  pid: number;
  stop(): void;
}

async function startOpenDkim(home: string): Promise<Signer> {
  const port = freePort();
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  writeFileSync(join(home, "key.pem"), privateKey, { mode: 0o600 });
  const settings = {
    Mode: "s",
    Domain: DOMAIN,
    Selector: "bench",
    KeyFile: join(home, "key.pem"),
    Socket: `inet:${port}@127.0.0.1`,
    Canonicalization: "relaxed/relaxed",
    OversignHeaders: "From",
    InternalHosts: "127.0.0.1",
    Syslog: "no",
    RequireSafeKeys: "no",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  writeFileSync(join(home, "opendkim.conf"), lines.join(""));
  const child = Bun.spawn([OPENDKIM, "-f", "-x", join(home, "opendkim.conf")], {
    stdin: "ignore",
    stdout: Bun.file(join(home, "opendkim.log")),
    stderr: Bun.file(join(home, "opendkim.err")),
  });
  const stop = (): void => child.kill("SIGKILL");
  process.on("exit", stop);
  if (!(await answers("127.0.0.1", port, child)))
    throw new Error(`opendkim does not start: ${readFileSync(join(home, "opendkim.err"), "utf8")}`);
  return { port, pid: child.pid, stop };
}

/** Makes smtp-source send the message of the other benches to as many recipients as there are messages. */
function offer(home: string, port: number, { warm, count, connections }: PostfixOptions): Bun.Subprocess {
  const { raw } = compose({
    from: { email: `news@${DOMAIN}`, name: "Bench" },
    to: [{ email: "person@d1.example" }],
    subject: "Measured",
    text: TEXT,
    html: HTML,
    messageId: `<measured@${DOMAIN}>`,
    date: 1_750_000_000_000,
  });
  // smtp-source ends lines itself.
  writeFileSync(join(home, "message"), raw.toString("latin1").replaceAll("\r\n", "\n"));
  return Bun.spawn(
    [
      SMTP_SOURCE,
      "-d",
      "-N",
      "-s",
      String(connections),
      "-m",
      String(warm + count),
      "-F",
      join(home, "message"),
      "-f",
      `news@${DOMAIN}`,
      "-t",
      "person@d1.example",
      `127.0.0.1:${port}`,
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "inherit" },
  );
}

const SENT = "status=sent";

/** Resolves with the number of relayed messages once the log shows at least this many. */
async function relayed(
  file: string,
  { count, limitMs }: { count: number; limitMs: number },
  fine: () => boolean,
): Promise<number> {
  const until = performance.now() + limitMs;
  // Postfix makes the log with its first line.
  while (!existsSync(file) && fine() && performance.now() < until) await Bun.sleep(POLL_MS);
  const log = openSync(file, "r");
  const chunk = Buffer.alloc(1 << 20);
  let sent = 0;
  for (let rest = ""; sent < count; ) {
    const read = readSync(log, chunk);
    const lines = (rest + chunk.toString("latin1", 0, read)).split("\n");
    rest = lines.pop() ?? "";
    sent += lines.filter((line) => line.includes(SENT)).length;
    if (!fine() || performance.now() > until) throw new Error(`Postfix has relayed ${sent} mails`);
    if (read === 0) await Bun.sleep(POLL_MS);
  }
  closeSync(log);
  return sent;
}

function memoryOf(pid: number): number {
  const rollup = `/proc/${pid}/smaps_rollup`;
  const text = statOf(pid) === null ? "" : readFileSync(rollup, "utf8");
  return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) * 1024;
}
