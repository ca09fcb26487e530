import type { Command } from "./support/command.ts";
import { nearestName } from "../core/typing-errors.ts";
import { EXIT_CODES } from "./support/exit.ts";

interface Entry {
  summary: string;
  /** Loads only what this command needs, because `readyz` runs every few seconds next to the service. */
  load(): Promise<Command>;
}

/** All commands by the words that call them, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: {
    summary: "start the service (default)",
    load: async () => (await import("./serve.ts")).serve,
  },
  open: {
    summary: "print a link that signs a browser in to the dashboard",
    load: async () => (await import("./open.ts")).open,
  },
  migrate: {
    summary: "apply missing database migrations",
    load: async () => (await import("./migrate.ts")).migrateNow,
  },
  "migrate status": {
    summary: "show which database migrations have been applied",
    load: async () => (await import("./migrate.ts")).migrateStatus,
  },
  "keys create": {
    summary: "create an API key and show its secret once",
    load: async () => (await import("./keys/create.ts")).keysCreate,
  },
  "keys list": {
    summary: "list API keys, newest first, without secrets",
    load: async () => (await import("./keys/list.ts")).keysList,
  },
  "keys revoke": {
    summary: "revoke an API key immediately",
    load: async () => (await import("./keys/revoke.ts")).keysRevoke,
  },
  "members invite": {
    summary: "make a member and print the link that signs in",
    load: async () => (await import("./members/members.ts")).membersInvite,
  },
  "members list": {
    summary: "list the people who can sign in",
    load: async () => (await import("./members/members.ts")).membersList,
  },
  "members remove": {
    summary: "remove a member and end all sessions",
    load: async () => (await import("./members/members.ts")).membersRemove,
  },
  "senders create": {
    summary: "create a project",
    load: async () => (await import("./senders.ts")).sendersCreate,
  },
  "senders list": {
    summary: "list projects, newest first",
    load: async () => (await import("./senders.ts")).sendersList,
  },
  "domains add": {
    summary: "register a domain and print the records to publish",
    load: async () => (await import("./domains.ts")).domainsAdd,
  },
  "domains verify": {
    summary: "check a domain's DNS records now, and say how to fix them",
    load: async () => (await import("./domains.ts")).domainsVerify,
  },
  "domains list": {
    summary: "list domains, newest first",
    load: async () => (await import("./domains.ts")).domainsList,
  },
  "inboxes create": {
    summary: "make an inbox",
    load: async () => (await import("./inboxes.ts")).inboxesCreate,
  },
  "inboxes list": {
    summary: "list inboxes, newest first",
    load: async () => (await import("./inboxes.ts")).inboxesList,
  },
  "webhooks create": {
    summary: "make a webhook and show its signing secret once",
    load: async () => (await import("./webhooks.ts")).webhooksCreate,
  },
  "webhooks list": {
    summary: "list webhooks, newest first",
    load: async () => (await import("./webhooks.ts")).webhooksList,
  },
  "dns zone": {
    summary: "print the DNS zone of SERVICE_DOMAIN as a zone file",
    load: async () => (await import("./dns-zone.ts")).dnsZone,
  },
  certificates: {
    summary: "list certificates, and try failed orders again",
    load: async () => (await import("./certificates.ts")).certificates,
  },
  send: {
    summary: "send a message through the running service",
    load: async () => (await import("./send.ts")).send,
  },
  tail: {
    summary: "follow the events of the running service",
    load: async () => (await import("./tail.ts")).tail,
  },
  listen: {
    summary: "forward events to a local address, signed as webhooks",
    load: async () => (await import("./listen.ts")).listen,
  },
  mcp: {
    summary: "serve tools for agents on standard input and output (MCP)",
    load: async () => (await import("./mcp.ts")).mcp,
  },
  readyz: {
    summary: "check whether the service on this machine is ready",
    load: async () => (await import("./readyz.ts")).readyz,
  },
  config: {
    summary: "show the settings in effect and their sources, without secrets",
    load: async () => (await import("./show-settings.ts")).showSettings,
  },
  doctor: {
    summary: "check the installation and say how to fix problems",
    load: async () => (await import("./doctor.ts")).doctor,
  },
  "master-key rotate": {
    summary: "change the master key while the service runs",
    load: async () => (await import("./master-key/rotate.ts")).masterKeyRotate,
  },
  "master-key reset": {
    summary: "replace the secrets of a lost master key",
    load: async () => (await import("./master-key/reset.ts")).masterKeyReset,
  },
  "master-key forget": {
    summary: "end links and tokens of an earlier master key",
    load: async () => (await import("./master-key/forget.ts")).masterKeyForget,
  },
  backup: {
    summary: "copy the database file while the service runs",
    load: async () => (await import("./backups/backup.ts")).backup,
  },
  restore: {
    summary: "make the database from a backup, and hold what was due in it",
    load: async () => (await import("./backups/restore.ts")).restore,
  },
  export: {
    summary: "write what the database holds into a file for another version, engine or machine",
    load: async () => (await import("./transfer/export.ts")).exportTo,
  },
  import: {
    summary: "read a file of export into the database",
    load: async () => (await import("./transfer/import.ts")).importFrom,
  },
  "release-held": {
    summary: "show what a restore holds, and let it go",
    load: async () => (await import("./backups/release-held.ts")).releaseHeldMail,
  },
};

/**
 * Finds the command that the arguments call, with the remaining arguments. Returns null if there is no such command.
 */
export function findCommand(argv: readonly string[]): { entry: Entry; rest: readonly string[] } | null {
  // If there are only flags, they belong to `serve`.
  if (argv[0] === undefined || argv[0].startsWith("-")) return entryOf("serve", argv);
  return entryOf(argv.slice(0, 2).join(" "), argv.slice(2)) ?? entryOf(argv[0], argv.slice(1));
}

function entryOf(name: string, rest: readonly string[]): { entry: Entry; rest: readonly string[] } | null {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return entry === undefined ? null : { entry, rest };
}

/** Characters of a command for each typing error that it may hold. */
const CHARACTERS_PER_ERROR = 4;
/** Longer words are not compared, because comparing takes time by the square of the length. */
const MAX_WORD_CHARS = 32;

/** Returns the command that the arguments were probably meant to call; null if none is near. */
export function meantCommand(argv: readonly string[]): string | null {
  const [first = "", second = ""] = argv.map((word) => word.slice(0, MAX_WORD_CHARS));
  const near = (called: string) => nearestName(called, Object.keys(COMMANDS), CHARACTERS_PER_ERROR);
  return near(`${first} ${second}`) ?? near(first);
}

/**
 * Returns the help of the program, or of a group of commands such as `keys`. Returns null if there is no such group.
 */
export function helpText(group: string | null): string | null {
  const names = Object.keys(COMMANDS).filter((name) => group === null || name.startsWith(`${group} `));
  if (names.length === 0) return null;
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => `  ${name.padEnd(width)}  ${COMMANDS[name]?.summary ?? ""}`);
  if (group !== null) return [`usage: postrider ${group} COMMAND`, "", ...lines].join("\n");
  return [
    "postrider: sends and receives email over a REST API",
    "",
    "usage: postrider [command]",
    "",
    ...lines,
    "",
    "`postrider COMMAND --help` shows the flags of a command with an example. --version shows the version.",
    "Settings are environment variables: `postrider config` lists them all, docs/settings.md explains them.",
    "Results go to standard output: text on a terminal, else JSON, one object per line. Errors go to standard error.",
    "",
    "exit codes:",
    ...EXIT_CODES.map(([code, meaning]) => `  ${String(code).padEnd(2)}  ${meaning}`),
  ].join("\n");
}
