/**
 * The peer that does the work of the service's reader: Debian's Postfix with policyd-spf, OpenDKIM and OpenDMARC.
 * Names come from a separate Unbound, which answers from memory.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "../../test/support/peers/peer.ts";
import { postfix, startPostfix } from "../../test/support/peers/postfix.ts";
import { freePort } from "../../test/support/redis.ts";
import type { DnsRecord } from "../../test/support/dns.ts";
import type { Target } from "./inbound-targets.ts";
import { familyOf, processorOf } from "./process-family.ts";

const OPENDKIM = "/usr/sbin/opendkim";
const OPENDMARC = "/usr/sbin/opendmarc";
const POLICYD_SPF = "/usr/bin/policyd-spf";
const UNBOUND = "/usr/sbin/unbound";
/** The address of Unbound. Programs that read resolv.conf ask port 53, which other addresses may use. */
const RESOLVER = "127.0.0.77";
/** Our name in the results of the checks, which OpenDMARC trusts. */
const AUTHSERV = "mx.peer.test";
/** A network that no client is in: by default these programs do not check clients on the same machine. */
const NO_ONE = "192.0.2.1";

/** A fortieth of the messages takes it as long as all take others. */
const SHARE = 1 / 40;

/** Returns why this cannot be measured here; null if it can. */
export function checkingMissing(): string | null {
  if (postfix.missing !== null) return postfix.missing;
  const file = [OPENDKIM, OPENDMARC, POLICYD_SPF, UNBOUND].find((program) => !existsSync(program));
  return file === undefined ? null : `${file} is not installed`;
}

/** Starts Postfix with SPF, DKIM and DMARC checks into its hold queue. The records are those of the sender. */
export async function startChecking(home: string, records: readonly DnsRecord[]): Promise<Target> {
  const folder = join(home, `checking-${Bun.randomUUIDv7()}`);
  mkdirSync(folder);
  // policyd-spf runs as another user.
  for (const path of [home, folder]) chmodSync(path, 0o755);
  const [dkimPort, dmarcPort] = [freePort(), freePort()];
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const resolv = file("resolv.conf", `nameserver ${RESOLVER}\n`);
  const here = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolv];
  const helpers = [
    await helper(
      [UNBOUND, "-d", "-c", file("unbound.conf", unboundConf(folder, records))],
      folder,
      RESOLVER,
      53,
    ),
    await helper(
      [...here, OPENDKIM, "-f", "-x", file("opendkim.conf", openDkimConf(folder, dkimPort))],
      folder,
      "127.0.0.1",
      dkimPort,
    ),
    await helper(
      [...here, OPENDMARC, "-f", "-c", file("opendmarc.conf", openDmarcConf(folder, dmarcPort))],
      folder,
      "127.0.0.1",
      dmarcPort,
    ),
  ];
  const server = await startPostfix(mainCf(dkimPort, dmarcPort), "", {
    master: `policyd-spf unix - n n - 0 spawn user=nobody argv=${POLICYD_SPF} ${file("spf.conf", SPF_CONF)}\n`,
    wrapper: here,
  });
  const pids = [server.pid, ...helpers.map(({ pid }) => pid)];
  return {
    port: server.port,
    pid: server.pid,
    share: SHARE,
    processor: () => processorOf(pids.flatMap(familyOf)),
    async end() {
      const hold = join(server.folder, "queue/hold");
      const held = readdirSync(hold).map((name) => readFileSync(join(hold, name), "latin1"));
      await server.stop();
      for (const child of helpers) child.kill("SIGTERM");
      return held.filter((mail) => /spf=pass/.test(mail) && /dmarc=pass/.test(mail)).length;
    },
  };
}

/** Starts a program and waits until it answers at its port. */
async function helper(
  command: readonly string[],
  folder: string,
  ip: string,
  port: number,
): Promise<Bun.Subprocess> {
  const log = join(folder, `helper-${port}.log`);
  const output = Bun.file(log);
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: output, stderr: output });
  process.on("exit", () => child.kill("SIGKILL"));
  if (!(await answers(ip, port, child)))
    throw new Error(`${command.join(" ")} does not start: ${readFileSync(log, "utf8")}`);
  return child;
}

function mainCf(dkimPort: number, dmarcPort: number): Record<string, string> {
  return {
    // In place of mynetworks, which would let the client pass unchecked.
    virtual_mailbox_domains: "bench.example",
    virtual_mailbox_maps: "static:inbox/",
    smtpd_client_restrictions: "check_client_access static:HOLD",
    // Half of the process limit without it, fewer than `--sessions` may name.
    smtpd_client_connection_count_limit: "0",
    smtpd_recipient_restrictions:
      "reject_unauth_destination, check_policy_service { unix:private/policyd-spf, timeout=60s }",
    smtpd_milters: `inet:127.0.0.1:${dkimPort}, inet:127.0.0.1:${dmarcPort}`,
    milter_default_action: "tempfail",
    smtpd_tls_security_level: "none",
    in_flow_delay: "0",
  };
}

function conf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");
}

function openDkimConf(folder: string, port: number): string {
  writeFileSync(join(folder, "no-one"), `${NO_ONE}\n`);
  return conf({
    Mode: "v",
    Socket: `inet:${port}@127.0.0.1`,
    AuthservID: AUTHSERV,
    AlwaysAddARHeader: "yes",
    InternalHosts: NO_ONE,
    Syslog: "no",
  });
}

function openDmarcConf(folder: string, port: number): string {
  return conf({
    Socket: `inet:${port}@127.0.0.1`,
    AuthservID: AUTHSERV,
    TrustedAuthservIDs: AUTHSERV,
    IgnoreHosts: join(folder, "no-one"),
    RejectFailures: "true",
    Syslog: "false",
  });
}

const SPF_CONF = `debugLevel = 0
HELO_reject = Fail
Mail_From_reject = Fail
Header_Type = AR
Authserv_Id = ${AUTHSERV}
skip_addresses = ${NO_ONE}
`;

function unboundConf(folder: string, records: readonly DnsRecord[]): string {
  const texts = records.map(({ name, data }) => {
    const strings = [data].flat().map((text) => `"${String(text)}"`);
    return `  local-data: '${name}. 3600 IN TXT ${strings.join(" ")}'\n`;
  });
  return `server:
  interface: ${RESOLVER}
  port: 53
  do-daemonize: no
  chroot: ""
  username: ""
  directory: "${folder}"
  pidfile: ""
  use-syslog: no
  local-zone: "." static
${texts.join("")}remote-control:
  control-enable: no
`;
}
