import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { MAX_ADDRESS_OCTETS, normalizeAddress, normalizeDomain } from "./core/addresses.ts";
import { SettingsError } from "./core/errors.ts";
import { distinctAddresses, isNetwork, MAX_DNS_SERVERS } from "./core/networks.ts";
import type { LogFormat, LogLevel } from "./log.ts";

/** Roles that one process may take. */
export const ROLES = ["api", "smtp", "worker"] as const;
export type Role = (typeof ROLES)[number];

/** How outbound mail leaves: kept here, through a smarthost, or straight to the recipients' MX hosts. */
export const DELIVERIES = ["capture", "relay", "mx"] as const;
export type DeliveryMode = (typeof DELIVERIES)[number];

/** A request rate: tokens that a bucket is given a second, and those it holds at most. */
export interface Plan {
  perSecond: number;
  burst: number;
}

/** Everything a process can be told. Durations are seconds where named so, sizes bytes. */
export interface Config {
  host: string;
  port: number;
  publicUrl: string;
  dataDir: string;
  databaseUrl: string;
  databaseAuthToken: string | null;
  databaseSyncUrl: string | null;
  redisUrl: string | null;
  roles: ReadonlySet<Role>;
  serviceDomain: string;
  ownerEmail: string;
  rootApiKey: string | null;
  masterKey: string | null;
  delivery: DeliveryMode;
  smtpRelayUrl: string | null;
  smtpOutPort: number;
  smtpHost: string;
  smtpPort: number;
  smtpTlsKey: string | null;
  smtpTlsCert: string | null;
  dnsServers: readonly string[];
  /** Addresses. */
  dnsHost: readonly string[];
  /** Null: this process is no name server. */
  dnsPort: number | null;
  /** Addresses. */
  publicIps: readonly string[];
  allowPrivateWebhooks: boolean;
  allowPrivateMx: boolean;
  deliveryRetrySeconds: readonly number[];
  deliveryGiveUpSeconds: number;
  webhookRetrySeconds: readonly number[];
  webhookTimeoutSeconds: number;
  webhookDisableAfterSeconds: number;
  domainRecheckSeconds: readonly number[] | null;
  destinationConnections: number;
  /** Messages a second; 0: no limit. */
  destinationRate: number;
  smtpMaxConnections: number;
  smtpMaxConnectionsPerIp: number;
  /** Addresses, or networks as `address/bits`. */
  smtpProxies: readonly string[];
  httpProxies: readonly string[];
  plans: Readonly<Record<string, Plan | null>>;
  tiers: Readonly<Record<string, number | null>>;
  defaultPlan: string;
  defaultTrustTier: string;
  maxRecipients: number;
  maxMessageBytes: number;
  maxBodyBytes: number;
  maxAttachments: number;
  maxScheduleDays: number;
  /** Where bodies and bytes are kept: null in the database, else `s3://bucket[/prefix]`. */
  contentStore: string | null;
  s3Endpoint: string | null;
  s3Region: string;
  s3AccessKeyId: string | null;
  s3SecretAccessKey: string | null;
  s3SessionToken: string | null;
  /** Days; 0: kept for good. */
  retentionContentDays: number;
  retentionEventDays: number;
  /** Null: the metrics are for this machine alone. */
  metricsToken: string | null;
  logLevel: LogLevel;
  logFormat: LogFormat;
  /** Key of the command line's own requests. */
  postriderApiKey: string | null;
  /** Secrets given twice, by name: the file that `NAME_FILE` names beside one is not read. */
  givenTwice: readonly string[];
  /** Where each setting comes from that is not left to its default; plans and tiers by their full names. */
  sources: ReadonlyMap<string, SettingSource>;
}

/** Where a setting was read. */
export type SettingSource = "environment" | "file";

/** Kinds of values, with what bounds each. */
interface Kinds {
  text: object;
  integer: { min: number; max: number };
  flag: object;
  choice: { of: readonly string[] };
  choices: { of: readonly string[] };
  seconds: { positive?: true };
  secondsList: object;
  url: { schemes: readonly string[] };
  domain: { most: number };
  host: object;
  email: object;
  addresses: object;
  networks: object;
  ips: object;
  secret: { minLength: number };
}
type OneKind<Name extends keyof Kinds> = { kind: Name } & Kinds[Name];
type Kind = { [Name in keyof Kinds]: OneKind<Name> }[keyof Kinds];

/** One row of the table of settings. */
export interface Setting {
  name: string;
  type: Kind;
  /** As the table in the README shows it; the value used when it is a literal. */
  default: string;
  help: string;
  /** Also read from the file named by `NAME_FILE`; masked wherever the settings are shown. */
  secret?: boolean;
}

const PORT: Kind = { kind: "integer", min: 0, max: 65535 };
const COUNT: Kind = { kind: "integer", min: 1, max: 1_000_000_000 };

/**
 * What an address leaves for the zone's own name beside the longest that stands before it: `b+` and a token of 48 characters at
 * `bounce.`.
 */
const MAX_SERVICE_DOMAIN_OCTETS = MAX_ADDRESS_OCTETS - "b+@bounce.".length - 48;

/** The table of settings: the README's is generated from it. A default in brackets is computed. */
export const SETTINGS: readonly Setting[] = [
  {
    name: "HOST",
    type: { kind: "host" },
    default: "0.0.0.0",
    help: "Address that API, health and metrics listen on.",
  },
  {
    name: "PORT",
    type: PORT,
    default: "3000",
    help: "Port of the API; of health and metrics in every process.",
  },
  {
    name: "PUBLIC_URL",
    type: { kind: "url", schemes: ["http:", "https:"] },
    default: "(http://localhost:PORT)",
    help: "Address of the API as its clients and recipients see it.",
  },
  {
    name: "DATA_DIR",
    type: { kind: "text" },
    default: "./data",
    help: "Folder of the database file and the generated master key.",
  },
  {
    name: "DATABASE_URL",
    type: { kind: "url", schemes: ["file:", "libsql:", "http:", "https:"] },
    default: "(file in DATA_DIR)",
    help: "Database: `file:`, `libsql://`, `https://` or `http://`.",
  },
  {
    name: "DATABASE_AUTH_TOKEN",
    type: { kind: "secret", minLength: 1 },
    default: "(none)",
    help: "Token for a remote database.",
    secret: true,
  },
  {
    name: "DATABASE_SYNC_URL",
    type: { kind: "url", schemes: ["libsql:", "http:", "https:"] },
    default: "(none)",
    help: "Primary of which the file is an embedded replica.",
  },
  {
    name: "REDIS_URL",
    type: { kind: "url", schemes: ["redis:", "rediss:"] },
    default: "(none)",
    help: "Unset: queues in the process, fed from the database. Set: BullMQ on this Redis.",
    secret: true,
  },
  {
    name: "ROLES",
    type: { kind: "choices", of: ROLES },
    default: "api,smtp,worker",
    help: "What this process does: `api`, `smtp`, `worker`, or several of them.",
  },
  {
    name: "SERVICE_DOMAIN",
    type: { kind: "domain", most: MAX_SERVICE_DOMAIN_OCTETS },
    default: "postrider.localhost",
    help: "The installation's own zone: `mx.`, `spf.`, `dkim.`, `bounce.`, `onboarding.` and `simulator.` lie below it.",
  },
  {
    name: "OWNER_EMAIL",
    type: { kind: "email" },
    default: "owner@example.com",
    help: "Owner of the first account; read at first start.",
  },
  {
    name: "ROOT_API_KEY",
    type: { kind: "secret", minLength: 32 },
    default: "(generated)",
    help: "Account-wide key of the first account, at least 32 printable characters; read at first start.",
    secret: true,
  },
  {
    name: "MASTER_KEY",
    type: { kind: "secret", minLength: 32 },
    default: "(generated into DATA_DIR)",
    help: "Encrypts DKIM keys and webhook secrets at rest; at least 32 printable characters. It cannot be changed.",
    secret: true,
  },
  {
    name: "DELIVERY",
    type: { kind: "choice", of: DELIVERIES },
    default: "(`relay` if SMTP_RELAY_URL, else `mx` if SERVICE_DOMAIN is set, else `capture`)",
    help: "`mx`: straight to the recipients' mail servers. `relay`: through the smarthost. `capture`: mail is composed, signed, stored and marked delivered; no mail leaves the machine, webhooks do.",
  },
  {
    name: "SMTP_RELAY_URL",
    type: { kind: "url", schemes: ["smtp:", "smtps:"] },
    default: "(none)",
    help: "Smarthost: `smtp(s)://user:pass@host:port`, the port 25 (smtps: 465) unless told, user and password percent-encoded; `?insecure=1` lets them go without verified TLS.",
    secret: true,
  },
  {
    name: "SMTP_OUT_PORT",
    type: { kind: "integer", min: 1, max: 65535 },
    default: "25",
    help: "Port of other people's MX hosts.",
  },
  {
    name: "SMTP_HOST",
    type: { kind: "host" },
    default: "0.0.0.0",
    help: "Address the SMTP listener listens on.",
  },
  { name: "SMTP_PORT", type: PORT, default: "2525", help: "Port of the SMTP listener." },
  {
    name: "SMTP_TLS_KEY",
    type: { kind: "text" },
    default: "(self-signed)",
    help: "PEM file of the listener's private key.",
  },
  {
    name: "SMTP_TLS_CERT",
    type: { kind: "text" },
    default: "(self-signed)",
    help: "PEM file of the listener's certificate chain.",
  },
  {
    name: "DNS_SERVERS",
    type: { kind: "addresses" },
    default: "(the system's)",
    help: "`ip[:port],…` asked for every lookup; at most eight.",
  },
  {
    name: "DNS_HOST",
    type: { kind: "ips" },
    default: "0.0.0.0",
    help: "Addresses our name server listens on, `ip,…`; a machine with several names each, so that answers leave from the one that was asked.",
  },
  {
    name: "DNS_PORT",
    type: PORT,
    default: "(off)",
    help: "Port, UDP and TCP, of our name server for SERVICE_DOMAIN.",
  },
  {
    name: "PUBLIC_IPS",
    type: { kind: "ips" },
    default: "(none)",
    help: "`ip,…`: our addresses as the world sees them, for `ns.`, `mx.` and `spf.`",
  },
  {
    name: "ALLOW_PRIVATE_WEBHOOKS",
    type: { kind: "flag" },
    default: "0",
    help: "1 lets webhooks use http and private addresses; for development.",
  },
  {
    name: "ALLOW_PRIVATE_MX",
    type: { kind: "flag" },
    default: "0",
    help: "1 lets MX hosts have private addresses; for development.",
  },
  {
    name: "DELIVERY_RETRY_SECONDS",
    type: { kind: "secondsList" },
    default: "60,300,900,1800,3600,7200,14400,21600",
    help: "Delays after each failed delivery attempt; the last one repeats.",
  },
  {
    name: "DELIVERY_GIVE_UP_SECONDS",
    type: { kind: "seconds" },
    default: "259200",
    help: "Age at which a deferred recipient is given up; mail held for its project or domain is `rejected` after as long.",
  },
  {
    name: "WEBHOOK_RETRY_SECONDS",
    type: { kind: "secondsList" },
    default: "0,5,300,1800,7200,18000,36000,36000",
    help: "Delays before each webhook attempt, the first included; after the last, given up.",
  },
  {
    name: "WEBHOOK_TIMEOUT_SECONDS",
    type: { kind: "seconds", positive: true },
    default: "15",
    help: "Time a webhook endpoint has to answer, in all.",
  },
  {
    name: "WEBHOOK_DISABLE_AFTER_SECONDS",
    type: { kind: "seconds" },
    default: "432000",
    help: "Time of failures only after which a webhook is disabled.",
  },
  {
    name: "DOMAIN_RECHECK_SECONDS",
    type: { kind: "secondsList" },
    default: "(every 300 for 48 h, then hourly, verified ones daily)",
    help: "Delays between background checks of a domain; the last one repeats.",
  },
  {
    name: "DESTINATION_CONNECTIONS",
    type: COUNT,
    default: "5",
    help: "Connections to one destination (the set of MX hosts, or the smarthost) at a time.",
  },
  {
    name: "DESTINATION_RATE",
    type: { kind: "integer", min: 0, max: 1_000_000 },
    default: "20",
    help: "Messages a second to one set of MX hosts, over all processes that share a REDIS_URL; 0: no limit. A smarthost has none.",
  },
  {
    name: "SMTP_MAX_CONNECTIONS",
    type: COUNT,
    default: "20000",
    help: "Connections of the SMTP listener at a time; no more than three quarters of the files that the process may open.",
  },
  {
    name: "SMTP_MAX_CONNECTIONS_PER_IP",
    type: COUNT,
    default: "50",
    help: "The same from one IPv4 address, or one /64 of IPv6; loopback is exempt.",
  },
  {
    name: "SMTP_PROXIES",
    type: { kind: "networks" },
    default: "(none)",
    help: "Proxies before the SMTP listener, addresses and networks: their connections begin with a PROXY protocol v2 header.",
  },
  {
    name: "HTTP_PROXIES",
    type: { kind: "networks" },
    default: "(none)",
    help: "Proxies before the API, addresses and networks: their `X-Forwarded-For` says who the client is.",
  },
  {
    name: "PLAN_<NAME>",
    type: { kind: "text" },
    default: "free 10/20, pro 100/200, unlimited",
    help: "Request rate of a plan as `rate/burst`, or `unlimited`.",
  },
  {
    name: "TIER_<NAME>",
    type: { kind: "text" },
    default: "new 200, basic 2000, trusted 20000, high 200000, unlimited",
    help: "Recipients a UTC day of a trust tier, or `unlimited`.",
  },
  {
    name: "DEFAULT_PLAN",
    type: { kind: "text" },
    default: "pro",
    help: "Plan of senders made over the API.",
  },
  {
    name: "DEFAULT_TRUST_TIER",
    type: { kind: "text" },
    default: "basic",
    help: "Trust tier of senders made over the API.",
  },
  {
    name: "MAX_RECIPIENTS",
    type: { kind: "integer", min: 1, max: 1000 },
    default: "50",
    help: "Recipients of a message over to, cc and bcc; at most 1000.",
  },
  {
    name: "MAX_MESSAGE_BYTES",
    type: COUNT,
    default: "26214400",
    help: "Size of an encoded message, outbound and inbound.",
  },
  { name: "MAX_BODY_BYTES", type: COUNT, default: "41943040", help: "Size of a request body." },
  { name: "MAX_ATTACHMENTS", type: COUNT, default: "20", help: "Attachments of a message." },
  { name: "MAX_SCHEDULE_DAYS", type: COUNT, default: "30", help: "Days ahead that a send may be scheduled." },
  {
    name: "CONTENT_STORE",
    type: { kind: "url", schemes: ["s3:"] },
    default: "(the database)",
    help: "Where bodies, raw mail and attachments are kept: `s3://bucket/prefix`.",
  },
  {
    name: "S3_ENDPOINT",
    type: { kind: "url", schemes: ["http:", "https:"] },
    default: "(AWS, by its region)",
    help: "The object store of `CONTENT_STORE`, where it is not AWS.",
  },
  { name: "S3_REGION", type: { kind: "text" }, default: "us-east-1", help: "Its region." },
  { name: "S3_ACCESS_KEY_ID", type: { kind: "text" }, default: "(none)", help: "Who asks it." },
  {
    name: "S3_SECRET_ACCESS_KEY",
    type: { kind: "secret", minLength: 1 },
    default: "(none)",
    help: "With which requests to it are signed.",
    secret: true,
  },
  {
    name: "S3_SESSION_TOKEN",
    type: { kind: "secret", minLength: 1 },
    default: "(none)",
    help: "That of temporary keys.",
    secret: true,
  },
  {
    name: "RETENTION_CONTENT_DAYS",
    type: { kind: "integer", min: 0, max: 36_500 },
    default: "0",
    help: "Days that bodies, raw mail and attachments are kept; 0: for good.",
  },
  {
    name: "RETENTION_EVENT_DAYS",
    type: { kind: "integer", min: 0, max: 36_500 },
    default: "0",
    help: "Days that messages, their events and the webhook log are kept; 0: for good. Ends the unsubscribe links of what goes.",
  },
  {
    name: "METRICS_TOKEN",
    type: { kind: "secret", minLength: 16 },
    default: "(none: `/metrics` answers this machine alone)",
    help: "Bearer token that `/metrics` asks for, at least 16 printable characters.",
    secret: true,
  },
  {
    name: "LOG_LEVEL",
    type: { kind: "choice", of: ["debug", "info", "warning", "error"] },
    default: "info",
    help: "Least severe level that is logged: `debug`, `info`, `warning`, `error`.",
  },
  {
    name: "LOG_FORMAT",
    type: { kind: "choice", of: ["json", "pretty"] },
    default: "(pretty on a terminal, else json)",
    help: "Form of log lines: `pretty`, `json`.",
  },
  {
    name: "POSTRIDER_API_KEY",
    type: { kind: "secret", minLength: 1 },
    default: "(none)",
    help: "Key with which `postrider send` asks the API; the service does not read it.",
    secret: true,
  },
];

/** Thrown with every wrong setting, so that one start tells all of them. */
export class ConfigError extends SettingsError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`wrong settings:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

type Env = Readonly<Record<string, string | undefined>>;

/** What is wrong with a text as a value of each kind; null where nothing is. */
const FAULTS: { readonly [Name in keyof Kinds]: (text: string, kind: Kinds[Name]) => string | null } = {
  text: (text) => (text.length > 0 ? null : "must not be empty"),
  integer(text, { min, max }) {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? null : `must be a whole number from ${min} to ${max}`;
  },
  flag: (text) => (text === "0" || text === "1" ? null : "must be 0 or 1"),
  choice: (text, { of }) => (of.includes(text) ? null : `must be one of ${of.join(", ")}`),
  choices: (text, { of }) =>
    listFault(text, (item) => of.includes(item), `must be a comma list of ${of.join(", ")}`),
  seconds(text, { positive }) {
    if (!isSeconds(text)) return "must be a number of seconds";
    return positive && Number(text) === 0 ? "must be more than 0 seconds" : null;
  },
  secondsList: (text) => listFault(text, isSeconds, "must be a comma list of seconds"),
  url: (text, { schemes }) => urlFault(schemes, text),
  host: (text) =>
    isIP(withoutBrackets(text)) !== 0 || (/^[!-~]+$/.test(text) && normalizeDomain(text) !== null)
      ? null
      : "must be an IP address or a host name",
  domain(text, { most }) {
    const name = normalizeDomain(text);
    return name !== null && name.length <= most ? null : `must be a domain name of at most ${most} octets`;
  },
  email: (text) => (normalizeAddress(text) !== null ? null : "must be an email address"),
  addresses: (text) =>
    listFault(
      text,
      isServer,
      `must be a comma list of at most ${MAX_DNS_SERVERS} IP addresses, each with a port where it is not 53 (ip:port, [v6]:port)`,
      MAX_DNS_SERVERS,
    ),
  networks: (text) =>
    listFault(text, isNetwork, "must be a comma list of IP addresses and networks (address/bits)"),
  ips: (text) => listFault(text, isIp, `must be a comma list of at most ${MAX_IPS} IP addresses`, MAX_IPS),
  secret: (text, { minLength }) =>
    text.length >= minLength && /^[\x21-\x7e]+$/.test(text)
      ? null
      : `must be at least ${minLength} printable characters without spaces`,
};

function faultOf<Name extends keyof Kinds>(kind: OneKind<Name>, text: string): string | null {
  return FAULTS[kind.kind](text, kind);
}

/** The complaint unless the text is a comma list of one item to `most`, all of which fit; null where it is. */
function listFault(
  text: string,
  fits: (item: string) => boolean,
  complaint: string,
  most = Number.POSITIVE_INFINITY,
): string | null {
  const items = list(text);
  return items.length > 0 && items.length <= most && items.every(fits) ? null : complaint;
}

/** Addresses in one setting: all of them are in one SPF record, which must fit a datagram (RFC 7208 §3.4). */
const MAX_IPS = 16;

function isIp(text: string): boolean {
  return isIP(text) !== 0 && !text.includes("%");
}

/** As `net/dns/servers` reads it: an address, alone or with its port. */
function isServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, v6, v4, port = "53"] = /^(?:\[([^\]]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  return isIP(v6 ?? v4 ?? "") === (v6 === undefined ? 4 : 6) && Number(port) >= 1 && Number(port) <= 65535;
}

/** Schemes whose URL need name no host: a file has none, and a Redis without one is this machine's. */
const HOSTLESS: ReadonlySet<string> = new Set(["file:", "redis:", "rediss:"]);

function urlFault(schemes: readonly string[], text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !schemes.includes(url.protocol))
    return `must be a URL that starts with ${schemes.join(" or ")}`;
  if (url.hostname === "" && !HOSTLESS.has(url.protocol)) return `names nothing behind ${url.protocol}//`;
  // What a URL's reader passes over, those who take the text as it stands do not.
  if (/^\s|[\t\r\n]|\s$/.test(text)) return "must hold no line ends, tabs, or spaces around it";
  const start = HOSTLESS.has(url.protocol) ? url.protocol : `${url.protocol}//`;
  if (!text.startsWith(start)) return `must begin with ${start}`;
  if (/^file:(?:\/*|:memory:)$/.test(text)) return "names no file";
  if (url.protocol === "file:" && !["", "localhost"].includes(url.hostname))
    return "names a file of another machine: an absolute path takes three slashes";
  // libSQL would take the whole for a file's name.
  return /^file:.*[?#]/.test(text) ? "must end with the file: it takes no parameters" : null;
}

function isSeconds(text: string): boolean {
  return /^\d{1,9}(\.\d{1,3})?$/.test(text);
}

function list(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item.length > 0);
}

/** The texts set in the environment or in the files that `NAME_FILE` names, with what is wrong with them. */
function readTexts(env: Env, problems: string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const setting of SETTINGS) {
    const text = readText(env, setting, problems);
    if (text === undefined) continue;
    const wrong = faultOf(setting.type, text);
    if (wrong === null) texts.set(setting.name, text);
    else problems.push(`${setting.name}${setting.secret ? "" : `=${JSON.stringify(text)}`} ${wrong}`);
  }
  return texts;
}

/** An empty variable is an unset one: that is how compose files leave a setting out. */
function given(env: Env, name: string): string | undefined {
  return env[name] === "" ? undefined : env[name];
}

function sourcesOf(env: Env): Map<string, SettingSource> {
  const sources = new Map<string, SettingSource>();
  for (const { name, secret } of SETTINGS) {
    if (given(env, name) !== undefined) sources.set(name, "environment");
    else if (secret && given(env, `${name}_FILE`) !== undefined) sources.set(name, "file");
  }
  for (const name of Object.keys(env))
    if (/^(?:PLAN|TIER)_/.test(name) && given(env, name) !== undefined) sources.set(name, "environment");
  return sources;
}

function readText(env: Env, setting: Setting, problems: string[]): string | undefined {
  const direct = given(env, setting.name);
  if (direct !== undefined) return direct;
  const file = setting.secret ? given(env, `${setting.name}_FILE`) : undefined;
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    problems.push(`${setting.name}_FILE=${JSON.stringify(file)} cannot be read`);
    return undefined;
  }
}

const DEFAULT_PLANS: Readonly<Record<string, Plan | null>> = {
  free: { perSecond: 10, burst: 20 },
  pro: { perSecond: 100, burst: 200 },
  unlimited: null,
};
const DEFAULT_TIERS: Readonly<Record<string, number | null>> = {
  new: 200,
  basic: 2000,
  trusted: 20_000,
  high: 200_000,
  unlimited: null,
};

/** Plans or tiers: the defaults with every `PREFIX_NAME` of the environment laid over them. */
function readFamily<Value>(
  env: Env,
  prefix: string,
  defaults: Readonly<Record<string, Value | null>>,
  read: (text: string) => Value | undefined,
  form: string,
  problems: string[],
): Record<string, Value | null> {
  const family = { ...defaults };
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(prefix) || text === undefined || text === "") continue;
    const value = text === "unlimited" ? null : read(text);
    if (name === prefix) problems.push(`${name} names none: its name goes behind ${prefix}`);
    else if (value === undefined)
      problems.push(`${name}=${JSON.stringify(text)} must be ${form} or unlimited`);
    else family[name.slice(prefix.length).toLowerCase()] = value;
  }
  return family;
}

function readPlan(text: string): Plan | undefined {
  const match = /^(\d{1,7})\/(\d{1,7})$/.exec(text);
  const plan = { perSecond: Number(match?.[1]), burst: Number(match?.[2]) };
  return plan.perSecond > 0 && plan.burst > 0 ? plan : undefined;
}

function readTier(text: string): number | undefined {
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** Whether the URL is a smarthost's to its end: of a password with a / in it the beginning would pass for host and port. */
function isRelay(text: string): boolean {
  const { port, pathname, search, hash } = new URL(text);
  return (
    port !== "0" &&
    hasReadableLogin(text) &&
    /^\/?$/.test(pathname) &&
    /^(?:\?insecure=[01])?$/.test(search) &&
    hash === ""
  );
}

function hasLogin(url: string): boolean {
  const { username, password } = new URL(url);
  return username + password !== "";
}

/** Whether it has a user without a password, or the other way: what a script makes of an empty variable. Of a password alone no login comes. */
function hasHalfALogin(url: string): boolean {
  const { username, password } = new URL(url);
  return (username === "") !== (password === "");
}

/** Whether user and password are percent-encoded: a bare % is no character of a URL. */
function hasReadableLogin(url: string): boolean {
  const { username, password } = new URL(url);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/**
 * What is wrong with settings that are right each by itself.
 * @param env for what is no setting of ours
 * @param text a setting's text or its default; null where it has neither
 * @param known problems found so far
 */
function contradictions(
  env: Env,
  text: (name: string) => string | null,
  delivery: string,
  known: readonly string[],
): string[] {
  const isSet = (name: string): boolean => text(name) !== null;
  // A relay that was given wrongly is missing as well, and has been told.
  const relayIsWrong = known.some((problem) => problem.startsWith("SMTP_RELAY_URL"));
  const checks: [contradicts: boolean, problem: string][] = [
    ...samePorts(text).map((names): [boolean, string] => [true, `${names} are the same port`]),
    [isSet("SMTP_TLS_KEY") !== isSet("SMTP_TLS_CERT"), "SMTP_TLS_KEY and SMTP_TLS_CERT must be set together"],
    [
      delivery === "relay" && !isSet("SMTP_RELAY_URL") && !relayIsWrong,
      "DELIVERY=relay needs SMTP_RELAY_URL",
    ],
    [
      !isRelay(text("SMTP_RELAY_URL") ?? "smtp://relay"),
      "SMTP_RELAY_URL must end with host or port, or ?insecure=1 behind them, and have its user and password percent-encoded",
    ],
    [
      hasHalfALogin(text("SMTP_RELAY_URL") ?? "smtp://relay"),
      "SMTP_RELAY_URL must have both a user and a password, or neither",
    ],
    [
      isSet("CONTENT_STORE") && !(isSet("S3_ACCESS_KEY_ID") && isSet("S3_SECRET_ACCESS_KEY")),
      "CONTENT_STORE needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY",
    ],
    [
      // Bun's S3 client would take it for a token of our keys, unless S3_SESSION_TOKEN is there, be it empty.
      isSet("CONTENT_STORE") &&
        !isSet("S3_SESSION_TOKEN") &&
        env.S3_SESSION_TOKEN === undefined &&
        (env.AWS_SESSION_TOKEN ?? "") !== "",
      "AWS_SESSION_TOKEN would go with S3_ACCESS_KEY_ID: unset it, or set S3_SESSION_TOKEN to what belongs to that key, empty where nothing does",
    ],
    [
      isSet("DATABASE_SYNC_URL") && !(text("DATABASE_URL") ?? "file:").startsWith("file:"),
      "DATABASE_SYNC_URL needs DATABASE_URL to be a file, the replica of that primary",
    ],
    [
      !/^\/?\d*$/.test(new URL(text("REDIS_URL") ?? "redis:").pathname),
      "REDIS_URL must end with host or port, or the number of a database: of any other name Redis would use the first",
    ],
    [
      // They would reach the client as settings: a prefix with which the queue cannot work, another database than the path's.
      [...new URL(text("REDIS_URL") ?? "redis:").searchParams.keys()].some((name) => name !== "family"),
      "REDIS_URL takes no parameter but family: the database is named by its path",
    ],
    [
      !hasReadableLogin(text("REDIS_URL") ?? "redis:"),
      "REDIS_URL must have its user and password percent-encoded",
    ],
    [
      hasLogin(text("PUBLIC_URL") ?? "http://localhost"),
      "PUBLIC_URL must hold no user or password: it stands in mails for everybody to read",
    ],
    [
      /[?#]/.test(text("PUBLIC_URL") ?? ""),
      "PUBLIC_URL must end with host or path: links are made by adding to it",
    ],
    [
      /[?#]/.test(text("S3_ENDPOINT") ?? ""),
      "S3_ENDPOINT must end with host or path: bucket and name are added to it",
    ],
  ];
  return checks.flatMap(([contradicts, problem]) => (contradicts ? [problem] : []));
}

/** Pairs of our own listeners that would have one port of one address: of the second a start would say that another program has it. */
function samePorts(text: (name: string) => string | null): string[] {
  const smtp = list(text("ROLES") ?? "").includes("smtp");
  const doors = ["PORT", ...(smtp ? ["SMTP_PORT"] : []), "DNS_PORT"].map((name) => ({
    name,
    port: Number(text(name) ?? 0),
    hosts: list(text(name.replace("PORT", "HOST")) ?? "").map(withoutBrackets),
  }));
  return doors.flatMap((one, index) =>
    doors
      .slice(index + 1)
      .filter(({ port, hosts }) => port !== 0 && port === one.port && meet(hosts, one.hosts))
      .map(({ name, port }) => `${one.name} and ${name} (${port})`),
  );
}

/** Whether an address of the one is among the other's. `::` is all there are, `0.0.0.0` all of IPv4. */
function meet(hosts: readonly string[], others: readonly string[]): boolean {
  const holds = (all: string, host: string): boolean =>
    all === "::" || all === host || (all === "0.0.0.0" && !host.includes(":"));
  return hosts.some((host) => others.some((other) => holds(host, other) || holds(other, host)));
}

/**
 * Settings from the environment.
 * @param terminal whether a person reads the output: decides the default LOG_FORMAT
 * @throws ConfigError with all problems at once
 */
export function loadConfig(env: Env, terminal = false): Config {
  const problems: string[] = [];
  const texts = readTexts(env, problems);
  const defaults = new Map(SETTINGS.map((setting) => [setting.name, setting.default]));
  const text = (name: string): string | null => {
    const fallback = defaults.get(name) ?? "(none)";
    return texts.get(name) ?? (fallback.startsWith("(") ? null : fallback);
  };
  const required = (name: string): string => text(name) ?? "";
  const number = (name: string): number => Number(required(name));
  const numbers = (name: string): number[] => list(required(name)).map(Number);
  const plans = readFamily(env, "PLAN_", DEFAULT_PLANS, readPlan, "rate/burst", problems);
  const tiers = readFamily(env, "TIER_", DEFAULT_TIERS, readTier, "a number of recipients", problems);
  if (!Object.hasOwn(plans, required("DEFAULT_PLAN")))
    problems.push(`DEFAULT_PLAN=${required("DEFAULT_PLAN")} is no plan`);
  if (!Object.hasOwn(tiers, required("DEFAULT_TRUST_TIER")))
    problems.push(`DEFAULT_TRUST_TIER=${required("DEFAULT_TRUST_TIER")} is no trust tier`);
  const delivery = text("DELIVERY") ?? defaultDelivery(texts);
  problems.push(...contradictions(env, text, delivery, problems));
  if (problems.length > 0) throw new ConfigError(problems);

  const dataDir = required("DATA_DIR");
  const s3Endpoint = text("S3_ENDPOINT");
  return {
    host: withoutBrackets(required("HOST")),
    port: number("PORT"),
    // As it is written in a mail: encoded, in ASCII.
    publicUrl: withoutFinalSlashes(new URL(text("PUBLIC_URL") ?? `http://localhost:${number("PORT")}`).href),
    dataDir,
    databaseUrl: text("DATABASE_URL") ?? `file:${join(dataDir, "postrider.db")}`,
    databaseAuthToken: text("DATABASE_AUTH_TOKEN"),
    databaseSyncUrl: text("DATABASE_SYNC_URL"),
    redisUrl: text("REDIS_URL"),
    roles: new Set(list(required("ROLES")) as Role[]),
    serviceDomain: normalizeDomain(required("SERVICE_DOMAIN")) ?? "",
    ownerEmail: normalizeAddress(required("OWNER_EMAIL")) ?? "",
    rootApiKey: text("ROOT_API_KEY"),
    masterKey: text("MASTER_KEY"),
    delivery: delivery as DeliveryMode,
    smtpRelayUrl: text("SMTP_RELAY_URL"),
    smtpOutPort: number("SMTP_OUT_PORT"),
    smtpHost: withoutBrackets(required("SMTP_HOST")),
    smtpPort: number("SMTP_PORT"),
    smtpTlsKey: text("SMTP_TLS_KEY"),
    smtpTlsCert: text("SMTP_TLS_CERT"),
    dnsServers: list(text("DNS_SERVERS") ?? ""),
    dnsHost: distinctAddresses(list(required("DNS_HOST"))),
    dnsPort: text("DNS_PORT") === null ? null : number("DNS_PORT"),
    publicIps: distinctAddresses(list(text("PUBLIC_IPS") ?? "")),
    allowPrivateWebhooks: text("ALLOW_PRIVATE_WEBHOOKS") === "1",
    allowPrivateMx: text("ALLOW_PRIVATE_MX") === "1",
    deliveryRetrySeconds: numbers("DELIVERY_RETRY_SECONDS"),
    deliveryGiveUpSeconds: number("DELIVERY_GIVE_UP_SECONDS"),
    webhookRetrySeconds: numbers("WEBHOOK_RETRY_SECONDS"),
    webhookTimeoutSeconds: number("WEBHOOK_TIMEOUT_SECONDS"),
    webhookDisableAfterSeconds: number("WEBHOOK_DISABLE_AFTER_SECONDS"),
    domainRecheckSeconds: text("DOMAIN_RECHECK_SECONDS") === null ? null : numbers("DOMAIN_RECHECK_SECONDS"),
    destinationConnections: number("DESTINATION_CONNECTIONS"),
    destinationRate: number("DESTINATION_RATE"),
    smtpMaxConnections: number("SMTP_MAX_CONNECTIONS"),
    smtpMaxConnectionsPerIp: number("SMTP_MAX_CONNECTIONS_PER_IP"),
    smtpProxies: list(text("SMTP_PROXIES") ?? ""),
    httpProxies: list(text("HTTP_PROXIES") ?? ""),
    plans,
    tiers,
    defaultPlan: required("DEFAULT_PLAN"),
    defaultTrustTier: required("DEFAULT_TRUST_TIER"),
    maxRecipients: number("MAX_RECIPIENTS"),
    maxMessageBytes: number("MAX_MESSAGE_BYTES"),
    maxBodyBytes: number("MAX_BODY_BYTES"),
    maxAttachments: number("MAX_ATTACHMENTS"),
    maxScheduleDays: number("MAX_SCHEDULE_DAYS"),
    contentStore: text("CONTENT_STORE"),
    s3Endpoint: s3Endpoint === null ? null : withoutFinalSlashes(s3Endpoint),
    s3Region: required("S3_REGION"),
    s3AccessKeyId: text("S3_ACCESS_KEY_ID"),
    s3SecretAccessKey: text("S3_SECRET_ACCESS_KEY"),
    s3SessionToken: text("S3_SESSION_TOKEN"),
    retentionContentDays: number("RETENTION_CONTENT_DAYS"),
    retentionEventDays: number("RETENTION_EVENT_DAYS"),
    metricsToken: text("METRICS_TOKEN"),
    logLevel: required("LOG_LEVEL") as LogLevel,
    logFormat: (text("LOG_FORMAT") ?? (terminal ? "pretty" : "json")) as LogFormat,
    postriderApiKey: text("POSTRIDER_API_KEY"),
    givenTwice: SETTINGS.filter(
      ({ name, secret }) =>
        secret && given(env, name) !== undefined && given(env, `${name}_FILE`) !== undefined,
    ).map(({ name }) => name),
    sources: sourcesOf(env),
  };
}

/** An address as sockets take it: one of IPv6 is written in brackets elsewhere (RFC 3986 §3.2.2). */
function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*:.*)\]$/, "$1");
}

/** A URL to which paths are added: with its own slash an object store would look for a bucket without a name. */
function withoutFinalSlashes(url: string): string {
  return url.replace(/\/+$/, "");
}

function defaultDelivery(texts: ReadonlyMap<string, string>): DeliveryMode {
  if (texts.has("SMTP_RELAY_URL")) return "relay";
  return texts.has("SERVICE_DOMAIN") ? "mx" : "capture";
}
