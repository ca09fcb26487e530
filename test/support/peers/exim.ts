import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  maildir,
  onFreePort,
  type Peer,
  type PeerKind,
  PEER_BUSY,
  PEER_BUSY_REPLY,
  PEER_DOMAIN,
  PEER_MAX_OCTETS,
  type PeerOptions,
} from "./peer.ts";
import { makeRoot, rootMissing } from "./root.ts";

const NAME = "exim";
const USER = "Debian-exim";

/** Exim as Debian builds it, in a separate root. */
export const exim: PeerKind = {
  name: "Exim",
  missing: rootMissing(NAME),
  brokenTls: null,
  logsIn: true,
  quotesReply: true,
  start,
};

async function start(options: PeerOptions): Promise<Peer> {
  const ip = "127.0.0.1";
  const started = await onFreePort(ip, async (port) => {
    const root = makeRoot({
      name: NAME,
      users: [{ name: USER, home: "/var/spool/exim4" }],
      folders: { "var/spool/exim4": USER, "var/log/exim4": USER, "run/exim4": USER, "etc/exim4": "root" },
      files: {
        "etc/mailname": `mx.${PEER_DOMAIN}\n`,
        "etc/exim4/exim4.conf": configuration(ip, port, options),
        "etc/exim4/peer.crt": options.tls?.cert ?? "",
        // Not `.key`: Exim reads it as its own user.
        "etc/exim4/peer.private": options.tls?.key ?? "",
      },
    });
    const logs = ["log", "var/log/exim4/mainlog", "var/log/exim4/rejectlog"].map((name) =>
      join(root.folder, name),
    );
    const log = (): string =>
      logs.map((file) => (existsSync(file) ? readFileSync(file, "utf8") : "")).join("");
    return { root, log, stop: root.remove, process: root.spawn(["/usr/sbin/exim4", "-bdf", "-q10m"], "log") };
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

function configuration(ip: string, port: number, options: PeerOptions): string {
  const { tls, login, routes = {}, clientTls = true } = options;
  const domains = Object.entries(routes);
  return `
primary_hostname = mx.${PEER_DOMAIN}
domainlist local_domains = ${PEER_DOMAIN}
domainlist relay_domains = ${domains.map(([domain]) => domain).join(" : ")}
local_interfaces = ${ip}
daemon_smtp_ports = ${port}
acl_smtp_rcpt = check_recipient
acl_smtp_data = accept
message_size_limit = ${PEER_MAX_OCTETS}
tls_advertise_hosts = ${tls === null ? "" : "*"}
tls_certificate = /etc/exim4/peer.crt
tls_privatekey = /etc/exim4/peer.private
log_file_path = /var/log/exim4/%slog
keep_environment =
rfc1413_query_timeout = 0s
dkim_verify_signers =
smtp_accept_max = 100

begin acl
check_recipient:
  defer local_parts = ${PEER_BUSY.split("@")[0]}
        message = ${PEER_BUSY_REPLY}
  accept domains = +local_domains
         endpass
         message = 550 5.1.1 No such mailbox here
         verify = recipient
  accept domains = +relay_domains
         ${login === undefined ? "" : "authenticated = *"}
  deny message = 550 5.7.1 Relaying denied

begin routers
${domains
  .map(
    ([domain, route], at) => `to${at}:
  driver = manualroute
  domains = ${domain}
  transport = remote
  route_list = * ${route.ip ?? "127.0.0.1"}::${route.port}
  self = send
`,
  )
  .join("")}
mailbox:
  driver = accept
  domains = +local_domains
  local_parts = inbox
  transport = keep

begin transports
remote:
  driver = smtp
  port = 25
  ${clientTls ? "" : "hosts_avoid_tls = *"}
keep:
  driver = appendfile
  directory = /home/inbox/Maildir
  maildir_format
  user = inbox
  delivery_date_add
  return_path_add

begin retry
* * F,1h,1m

begin authenticators
${
  login === undefined
    ? ""
    : `plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${login.user}}}{eq{$auth3}{${login.pass}}}}}
  server_set_id = $auth2
  server_advertise_condition = \${if def:tls_in_cipher}
`
}`;
}
