import { isIP } from "node:net";
import { configureLog } from "../log.ts";
import { runHealth, worstOf } from "../flows/health/check.ts";
import type { Db } from "../store/engine/client.ts";
import { databaseFile, openDatabase } from "../wiring/store/database.ts";
import { checksOfRemote, doctorChecks } from "../wiring/doctor.ts";
import { API_FLAGS, apiFor, apiUrl } from "./support/api-access.ts";
import { type Context, defineCommand } from "./support/command.ts";
import { isThere } from "./support/database.ts";
import { EX_NO, EX_OK, usage } from "./support/exit.ts";
import { type Column, field } from "./support/output.ts";
import { sendTest } from "./support/send-test.ts";

const SMTP_PORT = 25;

/** Checks everything that the installation needs. */
export const doctor = defineCommand({
  name: "doctor",
  flags: {
    egress: { type: "string", value: "HOST", help: "mail server for the test of port 25, HOST or HOST:PORT" },
    clock: { type: "string", value: "URL", help: "web server whose Date header is compared with the clock" },
    send: {
      type: "string",
      value: "ADDRESS",
      help: "also send a message there, and show what its answer says of it",
    },
    timeout: { type: "string", value: "SECONDS", help: "longest wait of --send (default 120)" },
    ...API_FLAGS,
    url: {
      type: "string",
      value: "URL",
      help: "check only this installation from outside, and port 25 of SERVICE_DOMAIN if that is set",
    },
    lists: { type: "boolean", help: "also ask DNS block lists about our addresses and domains" },
    deep: { type: "boolean", help: "also check a large database completely, which may take long" },
  },
  about: `Checks settings, disk, database, queues, Redis, certificate, clock and smarthost. Also checks our zone and
every domain as the servers of DNS_SERVERS see them. Each line is ok, warn or fail, and says how to fix a
problem. It changes nothing, and works while the service runs or is stopped. Exits 1 if a line is fail. It
contacts only hosts from the settings and hosts that you name. With --send the running service sends a message
from an inbox of the project, and the answer or bounce shows what the receiver found. On another machine,
SERVICE_DOMAIN=mail.example.com postrider doctor --url https://api.example.com checks what only the world can:
that the unsubscribe page answers, and that port 25 takes mail to the role mailboxes.`,
  example: "postrider doctor",
  async run({ flags }, context) {
    const { config, clock, out } = context;
    const options = {
      egress: hostOf(flags.egress),
      clockUrl: urlOf(flags.clock),
      lists: flags.lists,
      deep: flags.deep,
    };
    const waitMs = waitOf(flags.timeout) * 1000;
    await configureLog(config.logLevel, config.logFormat);
    const database = await databaseOrWhyNot(context);
    try {
      const checks =
        flags.url === undefined
          ? await doctorChecks({ config, clock, db: database.get }, options)
          : checksOfRemote({ config, clock }, apiUrl(flags.url));
      const lines = await runHealth(clock, checks);
      if (flags.send !== undefined)
        lines.push(await sendTest({ clock, api: await apiFor(flags, context) }, flags.send, waitMs));
      out.rows(
        lines.map(({ name, status, message, fix }) => ({ name, status, message, fix: fix ?? null })),
        [field("status"), field("name", "check"), MESSAGE],
      );
      return worstOf(lines) === "fail" ? EX_NO : EX_OK;
    } finally {
      await database.close();
    }
  },
});

const MESSAGE: Column = {
  heading: "",
  text: ({ message, fix }) => (fix === null ? String(message) : `${sentence(String(message))} ${fix}`),
};

/** Ends a message with a full stop. Messages of errors have none. */
function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/**
 * Returns the database, or why there is none. Then that becomes one line of the result, and the other checks still
 * run.
 */
async function databaseOrWhyNot({
  config,
  clock,
}: Context): Promise<{ get: () => Db; close: () => Promise<void> }> {
  const file = databaseFile(config);
  try {
    // Opening a missing database would create it.
    if (file !== null && !isThere(file)) throw new Error(`there is no database at ${file}`);
    const db = await openDatabase(config, clock);
    return { get: () => db, close: () => db.close() };
  } catch (error) {
    const get = (): never => {
      throw error;
    };
    return { get, close: () => Promise.resolve() };
  }
}

/** Longest wait for an answer, seconds. */
const DEFAULT_WAIT_SECONDS = 120;
const MAX_WAIT_SECONDS = 3600;

function waitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_WAIT_SECONDS;
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > MAX_WAIT_SECONDS)
    throw usage(`--timeout: whole seconds from 1 to ${MAX_WAIT_SECONDS} are meant`);
  return seconds;
}

function hostOf(text: string | undefined): { host: string; port: number } | null {
  if (text === undefined) return null;
  if (isIP(text) !== 0) return { host: text, port: SMTP_PORT };
  const [, bracketed, plain, port] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = port === undefined ? SMTP_PORT : Number(port);
  if (host === undefined || number < 1 || number > 65_535)
    throw usage("--egress: HOST or HOST:PORT is meant");
  return { host, port: number };
}

function urlOf(text: string | undefined): URL | null {
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usage("--clock: a URL with http: or https: is meant");
  return url;
}
