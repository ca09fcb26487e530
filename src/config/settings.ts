import { join } from "node:path";
import { MAX_ADDRESS_OCTETS } from "../core/addresses.ts";
import { SPAM_CHECK_FAIL } from "../core/messages/spam.ts";
import type { Kind } from "./kinds.ts";
import * as kind from "./kinds.ts";
import { addressesOrDomains, issuer } from "./provider-kinds.ts";
import * as secondary from "./secondaries.ts";
import { tracking } from "./tracking-kind.ts";
import * as way from "./ways-out.ts";

/** Roles that one process may take. */
export const ROLES = ["api", "smtp", "worker"] as const;

/** How outbound mail leaves: kept here, through a smarthost, or straight to the recipients' MX hosts. */
export const DELIVERIES = ["capture", "relay", "mx"] as const;
export type DeliveryMode = (typeof DELIVERIES)[number];

/** The settings as given, for defaults that depend on them. */
export interface Given {
  /** Returns a setting's text, or its literal default; null if it has neither. */
  text(name: string): string | null;
  /** Returns true if the setting is given, even if its value is the default. */
  isGiven(name: string): boolean;
  /** True if a person reads the output. */
  terminal: boolean;
}

/** One row of the table of settings. */
export interface Setting<Name extends string = string, Value = unknown> {
  name: Name;
  kind: Kind<Value>;
  /** The default as docs/settings.md shows it. In brackets it is a description, else it is the text that is read. */
  default: string;
  help: string;
  /** Returns the text that is read if the setting is not given; null leaves the value null. */
  fallback: (given: Given) => string | null;
  /** Also read from the file named by `NAME_FILE`; masked wherever the settings are shown. */
  secret?: boolean;
  /** Represents all variables with the prefix before `<NAME>`, which `families.ts` reads. */
  isFamily?: boolean;
}

/** A setting with a literal default. */
function setting<const Name extends string, Value>(
  name: Name,
  kind: Kind<Value>,
  standard: string,
  help: string,
): Setting<Name, Value> {
  return { name, kind, default: standard, help, fallback: () => standard };
}

/** A setting whose value is null if it is not given. */
function optional<const Name extends string, Value>(
  name: Name,
  kind: Kind<Value>,
  standard: string,
  help: string,
): Setting<Name, Value | null> {
  return { name, kind, default: standard, help, fallback: () => null };
}

/** A setting that is null if it is not given, and never shown. */
function secret<const Name extends string>(
  name: Name,
  kind: Kind<string>,
  standard: string,
  help: string,
): Setting<Name, string | null> {
  return { ...optional(name, kind, standard, help), secret: true };
}

/** A list that is empty if it is not given. */
function list<const Name extends string, Value>(
  name: Name,
  kind: Kind<Value>,
  standard: string,
  help: string,
): Setting<Name, Value> {
  return { name, kind, default: standard, help, fallback: () => "" };
}

/** A setting whose default depends on others. */
function computed<const Name extends string, Value>(
  name: Name,
  kind: Kind<Value>,
  standard: string,
  fallback: (given: Given) => string,
  help: string,
): Setting<Name, Value> {
  return { name, kind, default: standard, help, fallback };
}

/** A row for docs and `config` that represents any number of variables. */
function family(name: string, standard: string, help: string): Setting<never, never> {
  const row: Setting = { ...optional(name, kind.text, standard, help), isFamily: true };
  return row as Setting<never, never>;
}

function publicUrl({ text: of }: Given): string {
  return `http://localhost:${of("PORT")}`;
}

function databaseFile({ text: of }: Given): string {
  return `file:${join(of("DATA_DIR") ?? "", "postrider.db")}`;
}

function defaultDelivery({ isGiven }: Given): DeliveryMode {
  if (isGiven("SMTP_RELAY_URL")) return "relay";
  return isGiven("SERVICE_DOMAIN") ? "mx" : "capture";
}

function defaultLogFormat({ terminal }: Given): "pretty" | "json" {
  return terminal ? "pretty" : "json";
}

/**
 * Octets that an address leaves for the service domain: its longest local part is `b+` and a token of 48 characters,
 * at `bounce.`.
 */
const MAX_SERVICE_DOMAIN_OCTETS = MAX_ADDRESS_OCTETS - "b+@bounce.".length - 48;

const ROWS = [
  setting("HOST", kind.host, "0.0.0.0", "Address on which the API, health and metrics listen."),
  setting(
    "PORT",
    kind.port,
    "3000",
    "Port of the API. Every process serves health and metrics there, whatever its role.",
  ),
  computed(
    "PUBLIC_URL",
    kind.linkBase("http:", "https:"),
    "(http://localhost:PORT)",
    publicUrl,
    "URL of the API as clients and recipients see it. Links in mail begin with it.",
  ),
  setting("DATA_DIR", kind.text, "./data", "Folder of the database file and the generated master key."),
  computed(
    "DATABASE_URL",
    kind.url("file:", "libsql:", "http:", "https:"),
    "(file in DATA_DIR)",
    databaseFile,
    "URL of the database: `file:`, `libsql://`, `https://` or `http://`.",
  ),
  secret("DATABASE_AUTH_TOKEN", kind.secretText(1), "(none)", "Token for a remote database."),
  optional(
    "DATABASE_SYNC_URL",
    kind.url("libsql:", "http:", "https:"),
    "(none)",
    "URL of a primary. If set, the database file is an embedded replica of it.",
  ),
  secret(
    "REDIS_URL",
    kind.url("redis:", "rediss:"),
    "(none)",
    "If set, queues are kept in this Redis (BullMQ), else in the process. Either way the database is the truth.",
  ),
  setting(
    "ROLES",
    kind.choices(ROLES),
    "api,smtp,worker",
    "Roles of this process: `api`, `smtp`, `worker`, or several with commas.",
  ),
  setting(
    "SERVICE_DOMAIN",
    kind.domain(MAX_SERVICE_DOMAIN_OCTETS),
    "postrider.localhost",
    "The installation's own zone, with `mx.`, `spf.`, `dkim.`, `bounce.`, `onboarding.` and `simulator.` below it.",
  ),
  setting(
    "OWNER_EMAIL",
    kind.email,
    "owner@example.com",
    "Address of the account's owner. Read at the first start only.",
  ),
  secret(
    "ROOT_API_KEY",
    kind.secretText(32),
    "(generated)",
    "Account-wide key of the first account, at least 32 printable characters. Read at the first start only.",
  ),
  optional(
    "FIRST_KEYS_FILE",
    kind.text,
    "(none)",
    "File for the keys that the first start makes, so that they stay out of its output. It is made with mode 0600; an existing file is left as it is, and the keys go into a new file next to it.",
  ),
  secret(
    "MASTER_KEY",
    kind.secretText(32),
    "(generated into DATA_DIR)",
    "Encrypts DKIM keys, certificate keys and webhook secrets at rest; at least 32 printable characters. `postrider master-key rotate` changes it.",
  ),
  secret(
    "MASTER_KEY_OLD",
    kind.secretText(32),
    "(none)",
    "The master key before a change, until `postrider master-key rotate` says that it can be removed.",
  ),
  computed(
    "DELIVERY",
    kind.choice(DELIVERIES),
    "(`relay` if SMTP_RELAY_URL, else `mx` if SERVICE_DOMAIN is set, else `capture`)",
    defaultDelivery,
    "`mx` delivers to the recipients' mail servers, `relay` through the smarthost. `capture` composes, signs and stores mail and marks it delivered: no mail leaves the machine unless it is released, but webhooks do.",
  ),
  setting(
    "CAPTURE_STRICT",
    kind.flag,
    "0",
    "If 1, `DELIVERY=capture` accepts mail only from verified domains, as the other modes do. Programs without a key may still use any address.",
  ),
  setting(
    "TEST_CONTROLS",
    kind.flag,
    "0",
    "If 1, tests can set the clock forward and make deliveries fail, by the routes under `/test/`. Needs `DELIVERY=capture` and a HOST of loopback. If its standard input is a pipe, the service stops when that is closed.",
  ),
  secret(
    "SMTP_RELAY_URL",
    kind.url("smtp:", "smtps:"),
    "(none)",
    "Smarthost: `smtp(s)://user:pass@host:port`, with the user and password percent-encoded. The port is 25 if none is given (465 for `smtps`). With `DELIVERY=capture`, only released messages take it. `?insecure=1` sends the password even if TLS is missing or not verified.",
  ),
  setting("SMTP_OUT_PORT", kind.integer(1, 65_535), "25", "Port of the MX hosts that mail is delivered to."),
  setting("SMTP_OUT_IPV6", kind.flag, "1", "If 0, mail leaves over IPv4 alone."),
  list(
    "EGRESS",
    way.egresses,
    "(as the system chooses)",
    "Our own addresses that mail to MX hosts leaves from: `ip[=name][@pool],…`, with the name in EHLO and the pool. Each has separate lanes. Mail for a domain leaves from the same address of its pool, or from the next one while a provider refuses that. Bulk mail leaves from the pool `bulk` if there is one, the rest from the addresses without a pool.",
  ),
  list(
    "WARM_UP",
    way.warmUps,
    "(none)",
    "Addresses of EGRESS that are new, each with the first day on which it sends: `ip:date,…`. To each provider such an address sends 50 messages on its first day, then 100, 250, 500, 1000, 2000, 5000, and twice as many each day up to 100,000. A day with more than 5 % deferred or a refusal of the address repeats, and a day without mail does not count. Further mail leaves from the other addresses of the pool, or waits.",
  ),
  setting("SMTP_HOST", kind.host, "0.0.0.0", "Address on which the SMTP listener listens."),
  setting("SMTP_PORT", kind.port, "2525", "Port of the SMTP listener."),
  setting(
    "SMTP_PORT_SHARED",
    kind.flag,
    "0",
    "If 1, other processes of the same user with this setting may listen on SMTP_PORT as well. The system gives each connection to one of them. Needs Linux.",
  ),
  optional(
    "SUBMISSION_PORT",
    kind.port,
    "(off)",
    "Port for programs that send by SMTP, with STARTTLS. Usually 587.",
  ),
  optional(
    "SUBMISSIONS_PORT",
    kind.port,
    "(off)",
    "Port for programs that send by SMTP under TLS from the start. Usually 465.",
  ),
  setting("SUBMISSION_HOST", kind.host, "0.0.0.0", "Address of the ports for programs that send by SMTP."),
  setting(
    "SUBMISSION_INSECURE_LOOPBACK",
    kind.flag,
    "0",
    "If 1, programs of this machine may log in at SUBMISSION_PORT without TLS.",
  ),
  optional("SMTP_TLS_KEY", kind.text, "(self-signed)", "PEM file of the private key for SMTP and TLS_PORT."),
  optional(
    "SMTP_TLS_CERT",
    kind.text,
    "(self-signed)",
    "PEM file of the certificate chain for SMTP and TLS_PORT.",
  ),
  optional(
    "ACME_EMAIL",
    kind.email,
    "(off)",
    "Address for the certificate authority. If set, certificates for our own names and hosts of delegated domains are ordered and renewed, which accepts its terms of service. Needs DNS_PORT and the role `worker`. SMTP_TLS_KEY and SMTP_TLS_CERT win.",
  ),
  setting(
    "ACME_DIRECTORY",
    kind.url("https:"),
    "https://acme-v02.api.letsencrypt.org/directory",
    "Directory URL of the certificate authority (RFC 8555).",
  ),
  optional(
    "ACME_EAB_KID",
    kind.text,
    "(none)",
    "Key id of your account at the authority, if it wants external account binding.",
  ),
  secret("ACME_EAB_HMAC_KEY", kind.base64Url, "(none)", "The HMAC key to ACME_EAB_KID, in base64url."),
  optional(
    "ACME_CA_FILE",
    kind.text,
    "(built-in authorities)",
    "PEM file of the authorities that the directory's own certificate is checked with, for a private one.",
  ),
  optional(
    "TLS_PORT",
    kind.port,
    "(off)",
    "HTTPS port of the API (role `api` only), on HOST. Port 443 must lead to it.",
  ),
  list(
    "DNS_SERVERS",
    kind.nameServers,
    "(the system's)",
    "Resolvers for every lookup, `ip[:port],…`; at most eight.",
  ),
  setting(
    "DNS_HOST",
    kind.ips,
    "0.0.0.0",
    "Addresses on which the name server listens, `ip,…`. If the machine has several, list each, so that an answer leaves from the address the question came to.",
  ),
  optional(
    "DNS_PORT",
    kind.port,
    "(off)",
    "Port (UDP and TCP) of the built-in name server for SERVICE_DOMAIN.",
  ),
  list(
    "DNS_SECONDARIES",
    secondary.secondaries,
    "(none)",
    "Name servers that copy our zones, `ip[:port]#keyname,…`: they get NOTIFY. Only they may transfer a zone, from that address and with that key of DNS_TSIG_KEYS.",
  ),
  list(
    "DNS_SECONDARY_NAMES",
    secondary.secondaryNames,
    "(none)",
    "Host names of name servers that serve copies of all our zones, `host,…`, published in NS records.",
  ),
  {
    ...list(
      "DNS_TSIG_KEYS",
      secondary.tsigKeys,
      "(none)",
      "Keys that we share with secondaries (RFC 8945), `name:hmac-sha256:<base64>,…`.",
    ),
    secret: true,
  },
  list(
    "PUBLIC_IPS",
    kind.ips,
    "(none)",
    "Public addresses of this installation, `ip,…`, published at `ns.`, `mx.` and `spf.`",
  ),
  setting(
    "ALLOW_PRIVATE_WEBHOOKS",
    kind.flag,
    "0",
    "If 1, webhooks may use http and private addresses. For development.",
  ),
  setting("ALLOW_PRIVATE_MX", kind.flag, "0", "If 1, MX hosts may have private addresses. For development."),
  setting(
    "DELIVERY_RETRY_SECONDS",
    kind.secondsList,
    "60,300,900,1800,3600,7200,14400,21600",
    "Delays after each deferred delivery attempt. The last one repeats.",
  ),
  setting(
    "DELIVERY_GIVE_UP_SECONDS",
    kind.seconds,
    "259200",
    "Age at which a deferred recipient expires. Mail that is held because of its project or domain is `rejected` at the same age.",
  ),
  setting(
    "WEBHOOK_RETRY_SECONDS",
    kind.secondsList,
    "0,5,300,1800,7200,18000,36000,36000",
    "Delays before each webhook attempt, the first included. After the last attempt the delivery is given up.",
  ),
  setting(
    "WEBHOOK_TIMEOUT_SECONDS",
    kind.positiveSeconds,
    "15",
    "Total time a webhook endpoint has to answer.",
  ),
  setting(
    "WEBHOOK_CONNECTIONS",
    kind.integer(1, 400),
    "60",
    "Maximum number of concurrent pushes to one webhook, per process. It starts at 4, grows while the endpoint answers well, and drops if it fails.",
  ),
  setting(
    "WEBHOOK_DISABLE_AFTER_SECONDS",
    kind.seconds,
    "432000",
    "If every attempt fails for this long, the webhook is disabled.",
  ),
  list(
    "WEBHOOK_DENY",
    kind.networks,
    "(none)",
    "Further addresses and networks that no webhook or MTA-STS lookup connects to, `ip[/bits],…`; also if ALLOW_PRIVATE_WEBHOOKS is 1.",
  ),
  setting(
    "SUSPEND_BOUNCE_PERCENT",
    kind.percent,
    "8",
    "Hard bounces, in percent of the recipients of seven days, that suspend a project; at least 200 recipients. 0: none suspends. Projects of the tier `unlimited` are only warned.",
  ),
  setting(
    "SUSPEND_COMPLAINT_PERCENT",
    kind.percent,
    "0.3",
    "Complaints, in percent of the recipients of seven days, that suspend a project in the same way.",
  ),
  setting(
    "SUSPEND_MIN_COMPLAINTS",
    kind.integer(1, 1_000_000),
    "5",
    "Recipients with an authenticated complaint within seven days below which complaints suspend no project.",
  ),
  optional(
    "DOMAIN_RECHECK_SECONDS",
    kind.secondsList,
    "(every 300 for 48 h, then hourly, verified ones daily)",
    "Delays between background checks of a domain. The last one repeats.",
  ),
  setting(
    "DESTINATION_CONNECTIONS",
    kind.count,
    "5",
    "Maximum number of connections at a time to a set of MX hosts that is no known provider's, or to the smarthost, per process.",
  ),
  setting(
    "DESTINATION_RATE",
    kind.integer(0, 1_000_000),
    "20",
    "Messages a second to a set of MX hosts that is no known provider's, over all processes with the same REDIS_URL. 0 means no limit, and a smarthost has none.",
  ),
  list(
    "LANES",
    way.lanes,
    "(the values of each provider)",
    "Limits of single lanes: `name:connections/messages/rate,…` the maximum number of connections, of messages per connection, and of messages per second. Names as `GET /v1/lanes` shows them. A rate of 0 means no limit.",
  ),
  setting(
    "SMTP_MAX_CONNECTIONS",
    kind.count,
    "20000",
    "Maximum number of concurrent connections to the SMTP listener. They never take more than three quarters of the process's file handles.",
  ),
  setting(
    "SMTP_MAX_CONNECTIONS_PER_IP",
    kind.count,
    "50",
    "Maximum number of connections to the SMTP listener from one IPv4 address or one IPv6 /64. Loopback is exempt.",
  ),
  list(
    "SMTP_PROXIES",
    kind.networks,
    "(none)",
    "Addresses and networks of proxies in front of the SMTP listener. Their connections begin with a PROXY protocol v2 header. This also applies to SUBMISSION_PORT, but not to SUBMISSIONS_PORT.",
  ),
  list(
    "HTTP_PROXIES",
    kind.networks,
    "(none)",
    "Addresses and networks of proxies in front of the API. Their `X-Forwarded-For` names the client.",
  ),
  family(
    "PLAN_<NAME>",
    "free 10/20, pro 100/200, unlimited",
    "Request rate of a plan as `rate/burst`, or `unlimited`.",
  ),
  family(
    "TIER_<NAME>",
    "new 200, basic 2000, trusted 20000, high 200000, unlimited",
    "Recipients per UTC day of a trust tier, or `unlimited`.",
  ),
  setting("DEFAULT_PLAN", kind.text, "pro", "Plan of projects made over the API, if the request names none."),
  setting(
    "DEFAULT_TRUST_TIER",
    kind.text,
    "basic",
    "Trust tier of projects made over the API, if the request names none.",
  ),
  setting(
    "SERVICE_SIGNATURE",
    kind.flag,
    "0",
    "If 1, messages also have a DKIM signature of SERVICE_DOMAIN, and the fields that ask for complaints without enrolment (RFC 9477). One enrolment of SERVICE_DOMAIN in a feedback loop then covers all domains. Signing takes twice the time.",
  ),
  setting(
    "DEFAULT_TRACKING",
    tracking,
    "opens,clicks",
    "What new projects track: opens, or opens-auto, which leaves the picture out of html with under 3200 characters of text; clicks; or none.",
  ),
  setting(
    "QUOTA_STORED_OCTETS",
    kind.quota,
    "1073741824,53687091200,none",
    "Maximum number of bytes that a project can store, for the plans `free,pro,unlimited`; `none` for no limit. [Quotas](operate.md#quotas) says what counts.",
  ),
  setting(
    "QUOTA_TEMPLATES",
    kind.quota,
    "100,1000,none",
    "Maximum number of templates of a project, by plan in the same order.",
  ),
  setting("QUOTA_WEBHOOKS", kind.quota, "10,100,1000", "Maximum number of webhooks of a project, by plan."),
  setting("QUOTA_INBOXES", kind.quota, "100,10000,none", "Maximum number of inboxes of a project, by plan."),
  setting(
    "DKIM_KEYS_PER_HOUR",
    kind.integer(0, 100_000),
    "300",
    "Maximum number of requests of a project in an hour that make DKIM keys: new domains and rotations. 0 is no limit.",
  ),
  setting("QUOTA_DOMAINS", kind.quota, "10,500,none", "Maximum number of domains of a project, by plan."),
  setting(
    "QUOTA_API_KEYS",
    kind.quota,
    "50,500,none",
    "Maximum number of a project's keys that are not revoked, by plan. An account's own keys count as on `pro`.",
  ),
  setting(
    "QUOTA_CONTACTS",
    kind.quota,
    "10000,1000000,none",
    "Maximum number of contacts of a project, by plan.",
  ),
  setting(
    "QUOTA_SUPPRESSIONS",
    kind.quota,
    "10000,1000000,none",
    "Maximum number of suppressions of a project, by plan. Bounces and complaints add theirs even beyond it.",
  ),
  setting(
    "MIN_FREE_BYTES",
    kind.integer(0, 999_999_999_999),
    "536870912",
    "Free bytes of the data disk below which new mail and content are refused; the same applies below 5 % of the disk. 0 never refuses.",
  ),
  setting(
    "MAX_RECIPIENTS",
    kind.integer(1, 1_000),
    "50",
    "Maximum number of recipients of a message, counting to, cc and bcc. At most 1000.",
  ),
  setting("MAX_MESSAGE_BYTES", kind.count, "26214400", "Largest encoded message, outbound and inbound."),
  setting(
    "MAX_BODY_BYTES",
    kind.count,
    "41943040",
    "Largest body of a request that carries a message. Templates have at most 5 MiB, other bodies 1 MiB.",
  ),
  setting("MAX_ATTACHMENTS", kind.count, "20", "Maximum number of attachments of a message."),
  setting(
    "MAX_SCHEDULE_DAYS",
    kind.count,
    "30",
    "Maximum number of days ahead that a send can be scheduled.",
  ),
  optional(
    "SPAM_CHECK_URL",
    kind.baseUrl("http:", "https:"),
    "(off)",
    "Address of a worker of rspamd, such as `http://127.0.0.1:11333`. Mail for inboxes is sent to its `/checkv2` before it is accepted, and its verdict is `spam` of the record.",
  ),
  setting(
    "SPAM_CHECK_TIMEOUT_SECONDS",
    kind.positiveSeconds,
    "10",
    "Time limit for a verdict of the spam filter.",
  ),
  setting(
    "SPAM_CHECK_FAIL",
    kind.choice(SPAM_CHECK_FAIL),
    "accept",
    "What happens to a message without a verdict after a failure: `accept` takes it with `spam: null`. `defer` answers 451, so that its sender tries again. A project can choose for itself (`spamCheckFail`).",
  ),
  optional(
    "CONTENT_STORE",
    kind.url("s3:"),
    "(the database)",
    "Bucket for large bodies, raw mail and attachments: `s3://bucket/prefix`.",
  ),
  optional(
    "S3_ENDPOINT",
    kind.baseUrl("http:", "https:"),
    "(AWS, by its region)",
    "URL of the object store, if it is not AWS.",
  ),
  setting("S3_REGION", kind.text, "us-east-1", "Region of the object store."),
  optional("S3_ACCESS_KEY_ID", kind.text, "(none)", "Access key id for the object store."),
  secret("S3_SECRET_ACCESS_KEY", kind.secretText(1), "(none)", "Secret access key for the object store."),
  secret(
    "S3_SESSION_TOKEN",
    kind.secretText(1),
    "(none)",
    "Session token for the object store, if its keys are temporary.",
  ),
  setting(
    "RETENTION_CONTENT_DAYS",
    kind.integer(0, 36_500),
    "0",
    "Days that bodies, raw mail and attachments are kept. If 0, they are kept forever.",
  ),
  setting(
    "RETENTION_EVENT_DAYS",
    kind.integer(0, 36_500),
    "0",
    "Days that messages, their events and the webhook log are kept. If 0, they are kept forever. Unsubscribe links of deleted messages stop working.",
  ),
  setting(
    "RETENTION_REPORT_DAYS",
    kind.integer(30, 762),
    "90",
    "Days that DMARC and TLS reports are kept, added up by day and source.",
  ),
  setting(
    "RETENTION_AUDIT_DAYS",
    kind.integer(1, 36_500),
    "365",
    "Days that the audit trail is kept: who changed what.",
  ),
  setting(
    "DMARC_REPORTERS",
    kind.domains,
    "google.com,microsoft.com,dmarc.yahoo.com,amazonses.com,corp.mail.ru,alerts.comcast.net,fastmaildmarc.com",
    "Domains in From of the reporters whose reports count for the policy advice, if SPF or DKIM proves them. Name none that gives mailboxes to the public. All further reports are only shown.",
  ),
  setting(
    "BACKUP_EVERY",
    kind.interval,
    "off",
    "How often a worker backs up the database file, such as `12h` or `1d`. Backups are encrypted with the master key, and each is checked by opening it.",
  ),
  setting(
    "BACKUP_KEEP",
    kind.integer(1, 10_000),
    "14",
    "Number of those backups that are kept; older ones are deleted.",
  ),
  optional(
    "BACKUP_TO",
    kind.text,
    "(`backups` in DATA_DIR)",
    "Place of those backups: a folder, better on another disk, or `s3://bucket/prefix` with `backups/` below it.",
  ),
  optional("METRICS_PORT", kind.port, "(off)", "Port on 127.0.0.1 that serves `/metrics` without a token."),
  secret(
    "METRICS_TOKEN",
    kind.secretText(16),
    "(none: PORT has no `/metrics`)",
    "Bearer token for `/metrics` on PORT, at least 16 printable characters.",
  ),
  setting(
    "LOG_LEVEL",
    kind.choice(["debug", "info", "warning", "error"]),
    "info",
    "Least severe level to log: `debug`, `info`, `warning` or `error`.",
  ),
  computed(
    "LOG_FORMAT",
    kind.choice(["json", "pretty"]),
    "(pretty on a terminal, else json)",
    defaultLogFormat,
    "Format of log lines: `pretty` or `json`.",
  ),
  optional(
    "OIDC_ISSUER",
    issuer,
    "(off)",
    "URL of an OpenID provider with which members sign in to the dashboard. Its redirect URL for this service is `PUBLIC_URL/ui/provider/back`. http only at localhost.",
  ),
  optional("OIDC_CLIENT_ID", kind.text, "(none)", "What the provider calls this service."),
  secret(
    "OIDC_CLIENT_SECRET",
    kind.secretText(1),
    "(none)",
    "The secret to OIDC_CLIENT_ID. Without one, PKCE alone protects a sign-in.",
  ),
  optional(
    "OIDC_ROLE_CLAIM",
    kind.text,
    "(none)",
    "Claim that names the role, as one word or a list: `owner`, `developer`, `support`, `viewer`. The role with most rights counts, at each sign-in. Without it, new members are viewers.",
  ),
  setting(
    "OIDC_ALLOW",
    addressesOrDomains,
    "",
    "Addresses, and domains as `@example.com`, that the provider may sign in without an invitation. Comma list. Empty: members only.",
  ),
  secret(
    "POSTRIDER_API_KEY",
    kind.secretText(1),
    "(none)",
    "API key for commands that call the API, such as `postrider send`. The service does not read it.",
  ),
  optional(
    "POSTRIDER_URL",
    kind.linkBase("http:", "https:"),
    "(PUBLIC_URL)",
    "Address of the service for commands that call the API with a key, and for the SDK. The service does not read it.",
  ),
] as const;

/** The table of settings, from which `Config` and docs/settings.md are made. */
export const SETTINGS: readonly Setting[] = ROWS;

/** `SMTP_PORT` is `smtpPort` in the configuration. */
type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>;

/** The values of all settings. Durations are in seconds if the name says so; sizes are in bytes. */
export type SettingValues = {
  [Row in (typeof ROWS)[number] as CamelCase<Row["name"]>]: Row extends Setting<string, infer Value>
    ? Value
    : never;
};

/** Returns the name of a setting's value in the configuration: `smtpPort` for `SMTP_PORT`. */
export function configKey(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_all, letter: string) => letter.toUpperCase());
}
