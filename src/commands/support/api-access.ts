import type { Config } from "../../config.ts";
import { hostPort } from "../../core/networks.ts";
import { UI_HEADER } from "../../http/access/own-page.ts";
import { sessionCookie } from "../../http/access/session.ts";
import type { Db } from "../../store/engine/client.ts";
import { oldestWideKey } from "../../store/projects/keys.ts";
import { findProject, listProjects } from "../../store/projects/projects.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { currentKeys } from "../../wiring/store/installation-keys.ts";
import { accountOf } from "./account.ts";
import type { Api } from "./api-client.ts";
import type { Context, Flag } from "./command.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { isThere, withDatabase } from "./database.ts";
import { refused, usage } from "./exit.ts";
import { readSecret } from "./input.ts";
import { localAddress } from "./local-service.ts";

/** Maximum number of projects that are read to name them. */
const MAX_PROJECTS = 20;

/** The flags of commands that call a running service. */
export const API_FLAGS = {
  sender: {
    type: "string",
    value: "ID",
    help: "project, by id or external id; needed with an account-wide key (without a key: default)",
  },
  "key-file": {
    type: "string",
    value: "FILE",
    help: "file with the API key, or - for standard input (default: POSTRIDER_API_KEY)",
  },
  key: {
    type: "string",
    value: "SECRET",
    help: "API key; other users of the machine can see it, so prefer --key-file",
  },
  url: {
    type: "string",
    value: "URL",
    help: "address of the API, if a key is given (default: POSTRIDER_URL, else PUBLIC_URL)",
  },
} as const satisfies Readonly<Record<string, Flag>>;

export type ApiFlags = Readonly<Record<keyof typeof API_FLAGS, string | undefined>>;

/**
 * Returns how a command calls the service. Without a key, it calls the service on this machine. Its user must be able
 * to read the database and the master key, and could make a key with them, so it acts as the account-wide key.
 * @throws CommandError if there is neither a key nor a service on this machine
 */
export async function apiFor(flags: ApiFlags, context: Context): Promise<Api> {
  const { config } = context;
  const key = await keyOf(flags, config.postriderApiKey);
  if (key !== null) return apiWithKey(key, flags, config);
  const file = databaseFile(config);
  if (addressOf(flags, config) !== null || (file !== null && !isThere(file)))
    throw usage(
      "an API key is needed: --key-file FILE, or POSTRIDER_API_KEY. On the machine of the service none is needed, if the settings are the same (DATA_DIR)",
    );
  return withDatabase(context, (db) => localApi(db, flags.sender, context));
}

/** Returns how a command calls the service with a key: at the address of the flag, else of the settings. */
export function apiWithKey(key: string, flags: Partial<ApiFlags>, config: Config): Api {
  const url = apiUrl(addressOf(flags, config) ?? config.publicUrl);
  return { url, headers: { Authorization: `Bearer ${key}` }, sender: flags.sender };
}

/** Returns the address that the caller names; null if it is this machine's. */
function addressOf({ url }: Partial<ApiFlags>, { postriderUrl }: Config): string | null {
  return url ?? postriderUrl;
}

async function localApi(db: Db, sender: string | undefined, { config, clock }: Context): Promise<Api> {
  const { session } = await currentKeys({ db, clock }, config);
  const accountId = await accountOf(db, undefined);
  const keyId = await oldestWideKey(db, accountId);
  if (keyId === null)
    throw refused(
      "there is no account-wide key with every scope: postrider keys create --name cli makes one",
    );
  return {
    url: `http://${localHost(config)}`,
    headers: sessionHeaders(keyId, config, session, clock.now()),
    sender: sender ?? (await usualProject(db, accountId)),
  };
}

function localHost(config: Config): string {
  const { host, port } = localAddress(config);
  return hostPort(host, port);
}

/** Returns the headers of a session like that of a browser that has signed in with the key. */
function sessionHeaders(keyId: string, config: Config, key: Key, now: number): Record<string, string> {
  const [cookie = ""] = sessionCookie({ keyId, secure: false }, key, now).split(";");
  return { Cookie: cookie, Origin: `http://${localHost(config)}`, [UI_HEADER]: "1" };
}

/** External id of the project that the first start makes. */
const FIRST_PROJECT = "default";

/** Returns the account's only project, or else the first one. Throws (usage) if the first one has another name now. */
async function usualProject(db: Db, accountId: string): Promise<string> {
  const projects = await listProjects(db, accountId, null, MAX_PROJECTS);
  const [newest] = projects;
  if (newest === undefined) throw refused("there is no project yet: postrider senders create makes one");
  if (projects.length === 1) return newest.id;
  if ((await findProject(db, accountId, FIRST_PROJECT)) !== null) return FIRST_PROJECT;
  throw usage(`which project? --sender, one of ${projects.map(({ externalId }) => externalId).join(", ")}`);
}

async function keyOf(
  flags: Pick<ApiFlags, "key" | "key-file">,
  ofEnvironment: string | null,
): Promise<string | null> {
  if (flags.key !== undefined && flags["key-file"] !== undefined) throw usage("either --key or --key-file");
  if (flags["key-file"] !== undefined) return readSecret(flags["key-file"]);
  const key = flags.key ?? ofEnvironment;
  if (key === null || /^[\x21-\x7e]+$/.test(key)) return key;
  throw usage("the API key has characters that no key has");
}

/** Returns a URL of `--url` without its last slash. @throws CommandError if it is none */
export function apiUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usage("--url must begin with http:// or https://");
  return text.replace(/\/+$/, "");
}
