import type { Key } from "../../core/crypto/key-ring.ts";
import type { Config } from "../../config.ts";
import { trackingSwitches } from "../../core/messages/tracking.ts";
import { newId } from "../../core/ids.ts";
import { hasAccount, insertFirstAccount } from "../../store/projects/accounts.ts";
import { ConstraintError, type Statement, type Store } from "../../store/engine/client.ts";
import { findKeyByHash, insertKey } from "../../store/projects/keys.ts";
import { insertProject, NEW_PROJECT } from "../../store/projects/projects.ts";
import { hashSecret, keyFor, type NewKey, newApiSecret } from "./api-keys.ts";
import { newStartLink, type StartLink } from "./start-link.ts";
import { ensureInstallationKey, type GeneratedKey } from "../records/keys.ts";

export interface BootstrapDeps extends Store {
  /** Seals the installation's DKIM key at rest. */
  boxKey: Key;
  generateDkimKey: () => Promise<GeneratedKey>;
  /** Saves the first keys before the database has them. If left out, the caller shows them. */
  keepKeys?: SaveKeys | undefined;
  /** Called before the account and its keys are made. If it throws, none are. */
  beforeKeys?: () => void;
}

/** First keys that are saved outside the database. */
export interface SavedKeys {
  /** Called once the database has them. Returns their path. */
  done(): string;
  /** Called if the database does not have them. */
  giveUp(): void;
}

export type SaveKeys = (keys: FirstStart) => SavedKeys;

/** The secrets of the first start, which are only shown once. */
export interface FirstStart {
  accountKey: string;
  projectKey: string;
  /** The file that has them; null if they must be printed. */
  keptIn: string | null;
}

/** The secrets that a start has made. */
export interface Begun {
  /** Null with ROOT_API_KEY, and at every later start. */
  firstStart: FirstStart | null;
  /** The token of the dashboard's first link. Null at every later start. */
  startToken: string | null;
}

const NOTHING: Begun = { firstStart: null, startToken: null };

const FIRST_SENDER = { externalId: "default", name: "Default", plan: "unlimited", trustTier: "unlimited" };

type FirstConfig = Pick<Config, "ownerEmail" | "rootApiKey" | "defaultTracking">;

/**
 * Makes the installation's DKIM key on an empty database. Then makes the account, its first project and its keys in one
 * write. ROOT_API_KEY becomes the account-wide key; then no project key is made.
 */
export async function bootstrap(
  { db, clock, boxKey, generateDkimKey, keepKeys, beforeKeys }: BootstrapDeps,
  config: FirstConfig,
): Promise<Begun> {
  const now = clock.now();
  // Twice, because another process with another master key may have made the key at the same time.
  for (let check = 0; check < 2; check++) await ensureInstallationKey({ db, boxKey, generateDkimKey }, now);
  // This is the last step, because the secrets would not be shown if a later one failed.
  if (await hasAccount(db)) return NOTHING;
  beforeKeys?.();
  return makeAccount({ db, keepKeys }, config, now);
}

async function makeAccount(
  { db, keepKeys }: Pick<BootstrapDeps, "db" | "keepKeys">,
  config: FirstConfig,
  now: number,
): Promise<Begun> {
  const { rootApiKey } = config;
  const secrets =
    rootApiKey === null ? { accountKey: newApiSecret(), projectKey: newApiSecret(), keptIn: null } : null;
  const kept = secrets === null ? undefined : keepKeys?.(secrets);
  const { link, statements } = firstStatements(config, secrets, now);
  const told = () => ({
    firstStart: secrets === null ? null : { ...secrets, keptIn: kept?.done() ?? null },
    startToken: link.token,
  });
  try {
    await db.write(statements);
    return told();
  } catch (error) {
    // Committed, and the reply was lost: this is the only chance to show these secrets.
    if (secrets !== null && (await findKeyByHash(db, hashSecret(secrets.accountKey))) !== null) return told();
    kept?.giveUp();
    // Another process was first: our account was not made, and the sender's foreign key undid this write.
    if (error instanceof ConstraintError && (await hasAccount(db))) return NOTHING;
    throw error;
  }
}

function firstStatements(
  { ownerEmail, rootApiKey, defaultTracking }: FirstConfig,
  secrets: FirstStart | null,
  now: number,
): { link: StartLink; statements: Statement[] } {
  const accountId = newId("acc", now);
  const senderId = newId("snd", now);
  const fresh = { ...NEW_PROJECT, ...trackingSwitches(defaultTracking), accountId, createdAt: now };
  const sender = { ...FIRST_SENDER, ...fresh, id: senderId };
  const wide: NewKey = {
    accountId,
    name: "Account-wide",
    senderId: null,
    senderExternalId: null,
    scopes: [],
  };
  const own: NewKey = { ...wide, name: "Default project", senderId, senderExternalId: sender.externalId };
  const accountSecret = secrets?.accountKey ?? rootApiKey ?? "";
  const accountKey = keyFor(accountSecret, wide, now);
  const { link, statements } = newStartLink(accountKey.id, now);
  return {
    link,
    statements: [
      insertFirstAccount({ id: accountId, name: "Default", ownerEmail, createdAt: now }),
      insertProject(sender),
      insertKey(accountKey, hashSecret(accountSecret)),
      ...(secrets === null
        ? []
        : [insertKey(keyFor(secrets.projectKey, own, now), hashSecret(secrets.projectKey))]),
      ...statements,
    ],
  };
}
