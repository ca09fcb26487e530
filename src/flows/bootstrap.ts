import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { newId } from "../core/ids.ts";
import { hasAccount, insertFirstAccount } from "../store/accounts.ts";
import { ConstraintError, type Db, type Statement } from "../store/engine/client.ts";
import { findKeyByHash, insertKey } from "../store/keys.ts";
import { insertSender } from "../store/senders.ts";
import { hashSecret, keyFor, type NewKey, newApiSecret } from "./api-keys.ts";
import { ensureInstallationKey, type GeneratedKey } from "./verify/keys.ts";

export interface BootstrapDeps {
  db: Db;
  clock: Clock;
  /** Seals the installation's DKIM key at rest. */
  boxKey: Uint8Array;
  generateDkimKey: () => Promise<GeneratedKey>;
}

/** The secrets made at the first start: told this once and never again. */
export interface FirstStart {
  accountKey: string;
  projectKey: string;
}

const FIRST_SENDER = { externalId: "default", name: "Default", plan: "unlimited", trustTier: "unlimited" };

/**
 * Makes the installation's own DKIM key on an empty database, then the account, its first project and its keys, all in one
 * write. With ROOT_API_KEY that is the account-wide key, and no project key is made, since nobody would be told it.
 * @returns null where nothing is to be told: with ROOT_API_KEY, and at every start but the first
 */
export async function bootstrap(
  { db, clock, boxKey, generateDkimKey }: BootstrapDeps,
  config: Pick<Config, "ownerEmail" | "rootApiKey">,
): Promise<FirstStart | null> {
  const now = clock.now();
  // Twice: of two first starts at once, each with a master key of its own, the one that was late learns it here.
  for (let look = 0; look < 2; look++) await ensureInstallationKey({ db, boxKey, generateDkimKey }, now);
  // Last: what failed behind it would keep the secrets from being told.
  return (await hasAccount(db)) ? null : makeAccount(db, config, now);
}

async function makeAccount(
  db: Db,
  { ownerEmail, rootApiKey }: Pick<Config, "ownerEmail" | "rootApiKey">,
  now: number,
): Promise<FirstStart | null> {
  const secrets = rootApiKey === null ? { accountKey: newApiSecret(), projectKey: newApiSecret() } : null;
  try {
    await db.write(firstStatements(ownerEmail, secrets, rootApiKey ?? "", now));
    return secrets;
  } catch (error) {
    // Committed, and the reply was lost: these secrets are told now or never.
    if (secrets !== null && (await findKeyByHash(db, hashSecret(secrets.accountKey))) !== null)
      return secrets;
    // Another process was first: our account was not made, and the sender's foreign key undid this write.
    if (error instanceof ConstraintError && (await hasAccount(db))) return null;
    throw error;
  }
}

function firstStatements(
  ownerEmail: string,
  secrets: FirstStart | null,
  rootApiKey: string,
  now: number,
): Statement[] {
  const accountId = newId("acc", now);
  const senderId = newId("snd", now);
  const fresh = { accountId, dailyQuota: null, suspendedAt: null, createdAt: now };
  const sender = { ...FIRST_SENDER, ...fresh, id: senderId, trackOpens: true, trackClicks: true };
  const wide: NewKey = {
    accountId,
    name: "Account-wide",
    senderId: null,
    senderExternalId: null,
    scopes: [],
  };
  const own: NewKey = { ...wide, name: "Default project", senderId, senderExternalId: sender.externalId };
  const key = (secret: string, wanted: NewKey) => insertKey(keyFor(secret, wanted, now), hashSecret(secret));
  return [
    insertFirstAccount({ id: accountId, name: "Default", ownerEmail, createdAt: now }),
    insertSender(sender),
    key(secrets?.accountKey ?? rootApiKey, wide),
    ...(secrets === null ? [] : [key(secrets.projectKey, own)]),
  ];
}
