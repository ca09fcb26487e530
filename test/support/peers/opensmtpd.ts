import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  maildir,
  onFreePort,
  type Peer,
  type PeerKind,
  PEER_BUSY,
  PEER_BUSY_REPLY,
  PEER_DOMAIN,
  PEER_MAILBOX,
  PEER_MAX_OCTETS,
  PEERS,
  type PeerOptions,
} from "./peer.ts";
import { makeRoot, rootMissing } from "./root.ts";

const NAME = "opensmtpd";

/** OpenSMTPD as Debian builds it, in a separate root. */
export const opensmtpd: PeerKind = {
  name: "OpenSMTPD",
  missing: rootMissing(NAME),
  brokenTls: brokenTls(),
  // Only under TLS.
  logsIn: brokenTls() === null,
  quotesReply: true,
  start,
};

/** Its version 6 stores private keys in a way that OpenSSL 3 of Debian 12 does not support. */
function brokenTls(): string | null {
  if (rootMissing(NAME) !== null) return null;
  const { stderr } = Bun.spawnSync(["chroot", join(PEERS, NAME), "/usr/sbin/smtpd", "-h"]);
  return stderr.toString().includes("OpenSMTPD 6.") ? "OpenSMTPD 6 has no working TLS with OpenSSL 3" : null;
}

async function start(options: PeerOptions): Promise<Peer> {
  const ip = "127.0.0.1";
  const started = await onFreePort(ip, async (port) => {
    const root = makeRoot({
      name: NAME,
      users: [
        { name: "opensmtpd", home: "/var/lib/opensmtpd/empty" },
        { name: "opensmtpq", home: "/var/lib/opensmtpd/empty" },
      ],
      folders: { "var/spool/smtpd": "root", "var/run": "root" },
      files: {
        "etc/mailname": `mx.${PEER_DOMAIN}\n`,
        "etc/smtpd.conf": configuration(ip, port, options),
        "etc/peer.crt": options.tls?.cert ?? "",
        "etc/peer.key": options.tls?.key ?? "",
        "etc/logins":
          options.login === undefined ? "" : `${options.login.user} ${hash(options.login.pass)}\n`,
      },
    });
    const log = (): string => readFileSync(join(root.folder, "log"), "utf8");
    return { root, log, stop: root.remove, process: root.spawn(["/usr/sbin/smtpd", "-d"], "log") };
  });
  const { root, log, port, stop } = started;
  return {
    ip,
    port,
    log,
    mailbox: maildir(join(root.folder, "home/inbox/Maildir"), log),
    stop,
  };
}

function hash(password: string): string {
  return Bun.spawnSync(["openssl", "passwd", "-6", password]).stdout.toString().trim();
}

const DELAYS = [
  ...["host", "route", "source", "connector", "relay", "domain"].map((what) => `conn-delay-${what}`),
  "reconn-delay-route",
  "session-transaction-delay",
  "session-keepalive",
];

function configuration(ip: string, port: number, options: PeerOptions): string {
  const { tls, login, routes = {}, clientTls = true } = options;
  const scheme = clientTls ? "smtp" : "smtp+notls";
  const domains = Object.entries(routes);
  return [
    // It waits some seconds between connections to one host, and keeps open ones as long.
    ...DELAYS.map((delay) => `mta limit ${delay} 0`),
    `smtp max-message-size "${PEER_MAX_OCTETS}"`,
    ...(tls === null ? [] : ['pki peer cert "/etc/peer.crt"', 'pki peer key "/etc/peer.key"']),
    ...(login === undefined ? [] : ["table logins file:/etc/logins"]),
    `filter busy phase rcpt-to match rcpt-to { "${PEER_BUSY}" } reject "${PEER_BUSY_REPLY}"`,
    [
      `listen on ${ip} port ${port} hostname mx.${PEER_DOMAIN} filter busy`,
      tls === null ? "" : "tls pki peer",
      login === undefined ? "" : "auth-optional <logins>",
    ].join(" "),
    'action "keep" maildir "/home/inbox/Maildir"',
    ...domains.map(
      ([, route], at) => `action "to${at}" relay host ${scheme}://${route.ip ?? "127.0.0.1"}:${route.port}`,
    ),
    `match from any for rcpt-to { "${PEER_MAILBOX}", "${PEER_BUSY}" } action "keep"`,
    ...domains.flatMap(([domain], at) => [
      // Its own notices come from itself, whether or not clients must log in.
      `match from local mail-from "<>" for domain "${domain}" action "to${at}"`,
      `match ${login === undefined ? "" : "auth "}from any for domain "${domain}" action "to${at}"`,
    ]),
    "",
  ].join("\n");
}
