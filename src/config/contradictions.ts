import { listOf, withoutBrackets } from "./kinds.ts";
import { egresses, warmUps } from "./ways-out.ts";

type Env = Readonly<Record<string, string | undefined>>;
/** Returns a setting's text, or its literal default; null if it has neither. */
type TextOf = (name: string) => string | null;

/**
 * Lists what is wrong with settings that are each fine alone.
 * @param env for variables that are not ours
 * @param delivery the delivery mode in effect
 * @param known problems found so far
 */
export function contradictions(env: Env, text: TextOf, delivery: string, known: readonly string[]): string[] {
  return [...samePorts(text), ...RULES.flatMap((rule) => rule({ env, text, delivery, known }) ?? [])];
}

interface Given {
  env: Env;
  text: TextOf;
  delivery: string;
  known: readonly string[];
}

type Rule = (given: Given) => string | null;

/** Returns the rule that one setting needs the other. */
function together(one: string, other: string): Rule {
  return ({ text }) =>
    (text(one) === null) === (text(other) === null) ? null : `${one} and ${other} must be set together`;
}

/** Each rule returns a problem, or null if its settings agree. */
const RULES: readonly Rule[] = [
  ({ text, known }) => {
    if (known.some((problem) => /^(?:EGRESS|WARM_UP)/.test(problem))) return null;
    const own = new Set(egresses.read(text("EGRESS") ?? "").map(({ ip }) => ip));
    const unknown = [...warmUps.read(text("WARM_UP") ?? "").keys()].find((ip) => !own.has(ip));
    return unknown === undefined ? null : `WARM_UP names ${unknown}, which EGRESS lacks`;
  },
  together("SMTP_TLS_KEY", "SMTP_TLS_CERT"),
  together("OIDC_ISSUER", "OIDC_CLIENT_ID"),
  together("ACME_EAB_KID", "ACME_EAB_HMAC_KEY"),
  ({ text }) => {
    const keys = listOf(text("DNS_TSIG_KEYS") ?? "").map((key) => key.split(":", 1)[0]?.toLowerCase());
    const unknown = listOf(text("DNS_SECONDARIES") ?? "")
      .map((secondary) => secondary.split("#")[1]?.toLowerCase())
      .find((name) => !keys.includes(name));
    return unknown === undefined
      ? null
      : `DNS_SECONDARIES names the key ${unknown}, which DNS_TSIG_KEYS lacks`;
  },
  // The zone would need their addresses.
  ({ text }) => {
    const inside = listOf(text("DNS_SECONDARY_NAMES") ?? "").find((name) =>
      `.${name.toLowerCase()}`.endsWith(`.${text("SERVICE_DOMAIN")?.toLowerCase()}`),
    );
    return inside === undefined ? null : `DNS_SECONDARY_NAMES: ${inside} must not be in SERVICE_DOMAIN`;
  },
  // If the relay was given but is wrong, that problem is enough.
  ({ text, delivery, known }) =>
    delivery === "relay" &&
    text("SMTP_RELAY_URL") === null &&
    !known.some((problem) => problem.startsWith("SMTP_RELAY_URL"))
      ? "DELIVERY=relay needs SMTP_RELAY_URL"
      : null,
  ({ text }) =>
    (text("BACKUP_EVERY") ?? "off") !== "off" &&
    (text("DATABASE_SYNC_URL") !== null || !(text("DATABASE_URL") ?? "file:").startsWith("file:"))
      ? "BACKUP_EVERY needs the database to be a file: back up a server's database there"
      : null,
  ({ text, delivery }) =>
    text("TEST_CONTROLS") === "1" && !(delivery === "capture" && isLoopback(text("HOST") ?? ""))
      ? "TEST_CONTROLS needs DELIVERY=capture and HOST=127.0.0.1, because its routes let a caller set the clock"
      : null,
  ({ text }) =>
    isRelay(text("SMTP_RELAY_URL") ?? "smtp://relay")
      ? null
      : "SMTP_RELAY_URL must end with the host, the port or ?insecure=1, and have its user and password percent-encoded",
  ({ text }) =>
    hasHalfALogin(text("SMTP_RELAY_URL") ?? "smtp://relay")
      ? "SMTP_RELAY_URL must have both a user and a password, or neither"
      : null,
  ({ text }) =>
    objectStoreOf(text) !== null &&
    (text("S3_ACCESS_KEY_ID") === null || text("S3_SECRET_ACCESS_KEY") === null)
      ? `${objectStoreOf(text)} needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY`
      : null,
  // Bun's S3 client would send this token with our keys, unless S3_SESSION_TOKEN is there, even if empty.
  ({ env, text }) =>
    objectStoreOf(text) !== null &&
    env.S3_SESSION_TOKEN === undefined &&
    text("S3_SESSION_TOKEN") === null &&
    (env.AWS_SESSION_TOKEN ?? "") !== ""
      ? "AWS_SESSION_TOKEN would be sent with S3_ACCESS_KEY_ID: unset it, or set S3_SESSION_TOKEN to the token of that key (empty if it has none)"
      : null,
  ({ text }) =>
    text("DATABASE_SYNC_URL") !== null && !(text("DATABASE_URL") ?? "file:").startsWith("file:")
      ? "DATABASE_SYNC_URL needs DATABASE_URL to be a file, which becomes the replica"
      : null,
  // Redis would take any other name as database 0.
  ({ text }) =>
    /^\/?\d*$/.test(new URL(text("REDIS_URL") ?? "redis:").pathname)
      ? null
      : "REDIS_URL must end with the host, the port, or the number of a database",
  // The client would take parameters as options: a key prefix that BullMQ refuses, or another database.
  ({ text }) =>
    [...new URL(text("REDIS_URL") ?? "redis:").searchParams.keys()].some((name) => name !== "family")
      ? "REDIS_URL takes no parameter but family: the path names the database"
      : null,
  ({ text }) =>
    hasReadableLogin(text("REDIS_URL") ?? "redis:")
      ? null
      : "REDIS_URL must have its user and password percent-encoded",
  ({ text }) =>
    hasLogin(text("PUBLIC_URL") ?? "http://localhost")
      ? "PUBLIC_URL must hold no user or password, because recipients see it in links"
      : null,
  ({ text }) =>
    /[?#]/.test(text("PUBLIC_URL") ?? "") ||
    new URL(text("PUBLIC_URL") ?? "http://localhost").pathname !== "/"
      ? "PUBLIC_URL must end with its host, because the dashboard works only at the root of a host: give the service its own host name, such as https://mail.example.com"
      : null,
  ({ text }) =>
    /[?#]/.test(text("S3_ENDPOINT") ?? "")
      ? "S3_ENDPOINT must end with its host or path, because bucket and name are added to it"
      : null,
];

/** Returns the setting that names an object store; null if none does. */
function objectStoreOf(text: TextOf): string | null {
  if (text("CONTENT_STORE") !== null) return "CONTENT_STORE";
  return (text("BACKUP_TO") ?? "").startsWith("s3://") ? "BACKUP_TO" : null;
}

/** Lists pairs of our listeners that would take the same port of the same address. */
function samePorts(text: TextOf): string[] {
  const smtp = listOf(text("ROLES") ?? "").includes("smtp");
  const smtpPorts = ["SMTP_PORT", "SUBMISSION_PORT", "SUBMISSIONS_PORT"];
  const listeners = ["PORT", "TLS_PORT", ...(smtp ? smtpPorts : []), "DNS_PORT"].map((name) => ({
    name,
    port: Number(text(name) ?? 0),
    hosts: listOf(text(hostOf(name)) ?? "").map(withoutBrackets),
  }));
  return listeners.flatMap((one, index) =>
    listeners
      .slice(index + 1)
      .filter(({ port, hosts }) => port !== 0 && port === one.port && overlap(hosts, one.hosts))
      .map(({ name, port }) => `${one.name} and ${name} (${port}) are the same port`),
  );
}

/** Returns the setting of a port's address. Both ports of the API have one, and both ports of submissions. */
function hostOf(port: string): string {
  return port.replace(/^TLS_/, "").replace("SUBMISSIONS_", "SUBMISSION_").replace("PORT", "HOST");
}

/** Returns true if two listeners share an address. `::` holds all addresses, `0.0.0.0` all of IPv4. */
function overlap(hosts: readonly string[], others: readonly string[]): boolean {
  const holds = (all: string, host: string): boolean =>
    all === "::" || all === host || (all === "0.0.0.0" && !host.includes(":"));
  return hosts.some((host) => others.some((other) => holds(host, other) || holds(other, host)));
}

/** Checks the whole URL of a smarthost: in a password with a slash, the part before it would pass for host and port. */
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

/** Returns true if an address is of this machine alone. */
function isLoopback(host: string): boolean {
  const bare = withoutBrackets(host);
  return bare === "localhost" || bare === "::1" || bare.startsWith("127.");
}

function hasLogin(url: string): boolean {
  const { username, password } = new URL(url);
  return username + password !== "";
}

/** Returns true for a user without a password or the reverse, as a script makes of an empty variable. */
function hasHalfALogin(url: string): boolean {
  const { username, password } = new URL(url);
  return (username === "") !== (password === "");
}

/** Returns true if user and password are percent-encoded: a bare % is no character of a URL. */
function hasReadableLogin(url: string): boolean {
  const { username, password } = new URL(url);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
