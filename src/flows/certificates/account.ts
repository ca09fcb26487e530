import type { Key } from "../../core/crypto/key-ring.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import type { AcmeClient } from "../../net/acme/client.ts";
import { type AccountKey, type ExternalAccount, newAccountKey, readAccountKey } from "../../net/acme/jws.ts";
import {
  type AcmeAccount,
  deleteAcmeAccount,
  findAcmeAccount,
  insertAcmeAccount,
  updateAcmeAccount,
} from "../../store/domains/certificates.ts";
import type { Store } from "../../store/engine/client.ts";

export interface AccountDeps extends Store {
  /** Seals private keys at rest. */
  boxKey: Key;
  client: AcmeClient;
  /** URL of the CA's directory. */
  directory: string;
  /** The address that the CA writes to. */
  email: string;
  external: ExternalAccount | null;
}

/**
 * Returns our account at the CA, which is made at first. Its key is stored before the CA gets it. After a crash, the CA
 * knows the key again and returns the same account.
 * @throws AcmeError
 */
export async function openAccount(deps: AccountDeps): Promise<AccountKey> {
  const stored = (await findAcmeAccount(deps.db, deps.directory)) ?? (await makeAccount(deps));
  const key = readAccountKey(unseal(deps.boxKey, stored.sealedKey), stored.url);
  const { caaNames } = await deps.client.directory();
  const url = stored.url ?? (await deps.client.register(key, deps));
  const account = { ...key, url };
  if (stored.url !== null && stored.contact !== deps.email)
    await deps.client.updateContact(account, deps.email);
  const known: AcmeAccount = { ...stored, url, contact: deps.email, caaNames };
  if (JSON.stringify(known) !== JSON.stringify(stored)) await deps.db.write([updateAcmeAccount(known)]);
  return account;
}

async function makeAccount({ db, clock, boxKey, directory, email }: AccountDeps): Promise<AcmeAccount> {
  const sealedKey = seal(boxKey, await newAccountKey());
  await db.write([insertAcmeAccount(directory, sealedKey, email, clock.now())]);
  // Of two processes that make one at once, one stores its key.
  const stored = await findAcmeAccount(db, directory);
  if (stored === null) throw new Error("the account that was just stored is gone");
  return stored;
}

/** Error types of a CA that does not, or no longer, know the account. */
const ACCOUNT_GONE: ReadonlySet<string | null> = new Set(["accountDoesNotExist", "unauthorized"]);

/**
 * Forgets the account if the error says that the CA does not take it: it was revoked, or the CA has lost it. The next
 * try makes a new key and a new account. Returns true if it was forgotten.
 */
export async function forgetIfGone(
  { db, directory }: Pick<AccountDeps, "db" | "directory">,
  error: { type: string | null },
): Promise<boolean> {
  if (!ACCOUNT_GONE.has(error.type)) return false;
  const stored = await findAcmeAccount(db, directory);
  if (stored !== null) await db.write([deleteAcmeAccount(stored)]);
  return true;
}
