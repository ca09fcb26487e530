import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  MAILBOX_UID,
  maildir,
  needsRoot,
  onFreePort,
  type Peer,
  type PeerKind,
  PEER_BUSY,
  PEER_BUSY_REPLY,
  PEER_DOMAIN,
  PEER_MAILBOX,
  PEER_MAX_OCTETS,
  type PeerOptions,
} from "./peer.ts";
import { newFolder, removeFolder } from "../folder.ts";

const MASTER = "/usr/lib/postfix/sbin/master";
/** Seconds since the epoch. */
const AGES_AGO = 1_700_000_000;

/** Debian's Postfix, with its own configuration and queue. */
export const postfix: PeerKind = {
  name: "Postfix",
  missing: existsSync(MASTER) ? needsRoot() : "Postfix is not installed",
  brokenTls: null,
  logsIn: false,
  quotesReply: true,
  start,
};

function start(options: PeerOptions): Promise<Peer> {
  return startPostfix(settings(options), options.tls === null ? "" : options.tls.key + options.tls.cert);
}

export interface PostfixExtras {
  /** More lines of master.cf. */
  master?: string;
  /** Words before the command that starts it. */
  wrapper?: readonly string[];
}

/** A Postfix by main.cf settings, which may name its `FOLDER`. `pid` is the master's. */
export async function startPostfix(
  main: Readonly<Record<string, string>>,
  chain = "",
  { master = "", wrapper = [] }: PostfixExtras = {},
): Promise<Peer & { folder: string; pid: number }> {
  const ip = "127.0.0.1";
  const started = await onFreePort(ip, async (port) => {
    const folder = newFolder("postfix");
    // Its processes run as other users and need read access.
    chmodSync(folder, 0o755);
    makeFolders(folder);
    writeFileSync(join(folder, "etc/chain.pem"), chain, { mode: 0o600 });
    writeFileSync(join(folder, "etc/main.cf"), mainCf(folder, main));
    writeFileSync(join(folder, "etc/master.cf"), masterCf(ip, port) + master);
    // It reads a file that has just been changed again and again for two seconds.
    for (const name of ["main.cf", "master.cf"]) utimesSync(join(folder, "etc", name), AGES_AGO, AGES_AGO);
    const file = join(folder, "maillog");
    // Not `postfix start`: that checks the machine's own installation first, which takes seconds.
    const child = Bun.spawn([...wrapper, MASTER, "-d", "-s", "-c", join(folder, "etc")], {
      stdin: "ignore",
      cwd: join(folder, "queue"),
      stdout: Bun.file(join(folder, "start.log")),
      stderr: Bun.file(join(folder, "start.log")),
    });
    const log = (): string =>
      [join(folder, "start.log"), file]
        .map((name) => (existsSync(name) ? readFileSync(name, "utf8") : ""))
        .join("");
    // If the master ends, it ends the other processes.
    const atExit = (): void => child.kill("SIGTERM");
    process.on("exit", atExit);
    const stop = async (): Promise<void> => {
      atExit();
      // It ends its processes at once, and itself a second later.
      void child.exited.then(() => {
        removeFolder(folder);
        process.off("exit", atExit);
      });
    };
    return { folder, process: child, log, stop };
  });
  const { folder, log, port, stop, process: child } = started;
  return {
    ip,
    port,
    log,
    folder,
    pid: child.pid,
    mailbox: maildir(join(folder, "mail/inbox"), log),
    stop,
  };
}

const QUEUES = [
  "active",
  "bounce",
  "corrupt",
  "defer",
  "deferred",
  "flush",
  "hold",
  "incoming",
  "saved",
  "trace",
];

function makeFolders(folder: string): void {
  for (const name of ["queue", "data", "mail", "etc"]) mkdirSync(join(folder, name));
  chownSync(join(folder, "mail"), MAILBOX_UID, MAILBOX_UID);
  const owner = Number(Bun.spawnSync(["id", "-u", "postfix"]).stdout.toString());
  chownSync(join(folder, "data"), owner, 0);
  mkdirSync(join(folder, "queue/pid"));
  for (const name of [...QUEUES, "maildrop", "private", "public"]) {
    mkdirSync(join(folder, "queue", name), { mode: 0o700 });
    chownSync(join(folder, "queue", name), owner, 0);
  }
}

function settings(options: PeerOptions): Record<string, string> {
  const { tls, routes = {}, clientTls = true } = options;
  const domains = Object.entries(routes);
  return {
    virtual_mailbox_domains: PEER_DOMAIN,
    virtual_mailbox_base: "FOLDER/mail",
    virtual_mailbox_maps: `inline:{{${PEER_MAILBOX}=inbox/},{${PEER_BUSY}=busy/}}`,
    virtual_uid_maps: `static:${MAILBOX_UID}`,
    virtual_gid_maps: `static:${MAILBOX_UID}`,
    message_size_limit: String(PEER_MAX_OCTETS),
    relay_domains: domains.map(([domain]) => domain).join(" "),
    transport_maps:
      domains.length === 0
        ? ""
        : `inline:{${domains
            .map(([domain, route]) => `{${domain}=smtp:[${route.ip ?? "127.0.0.1"}]:${route.port}}`)
            .join(",")}}`,
    smtpd_recipient_restrictions: `check_recipient_access inline:{{${PEER_BUSY}=${PEER_BUSY_REPLY}}}, reject_unauth_destination, permit`,
    smtp_tls_security_level: clientTls ? "may" : "none",
    ...(tls === null
      ? { smtpd_tls_security_level: "none" }
      : { smtpd_tls_security_level: "may", smtpd_tls_chain_files: "FOLDER/etc/chain.pem" }),
  };
}

/** Settings that no test changes. It uses no DNS and nothing outside its folder. */
const ALWAYS: Readonly<Record<string, string>> = {
  compatibility_level: "3.6",
  queue_directory: "FOLDER/queue",
  data_directory: "FOLDER/data",
  maillog_file: "FOLDER/maillog",
  maillog_file_prefixes: "FOLDER",
  myhostname: `mx.${PEER_DOMAIN}`,
  mydestination: "",
  mynetworks: "",
  inet_protocols: "ipv4",
  smtp_dns_support_level: "disabled",
  smtp_host_lookup: "native",
  smtpd_peername_lookup: "no",
  alias_maps: "",
  alias_database: "",
  local_recipient_maps: "",
  notify_classes: "",
};

function mainCf(folder: string, main: Readonly<Record<string, string>>): string {
  return Object.entries({ ...ALWAYS, ...main })
    .map(([name, value]) => `${name} = ${value.replaceAll("FOLDER", folder)}\n`)
    .join("");
}

/** Runs nothing in a chroot, which would need a copy of the machine's files. */
function masterCf(ip: string, port: number): string {
  return `
${ip}:${port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`;
}
