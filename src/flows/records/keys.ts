import type { Key } from "../../core/crypto/key-ring.ts";
import { randomBytes } from "node:crypto";
import type { DkimAlgorithm } from "../../core/domains/dkim-keys.ts";
import { SettingsError } from "../../core/errors.ts";
import { encodeBase32 } from "../../core/ids.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import type { Db } from "../../store/engine/client.ts";
import { type DkimKeyRecord, insertInstallationKey } from "../../store/domains/dkim-keys.ts";
import { installationKey } from "../../store/messages/sending.ts";

/** A new key pair. */
export interface GeneratedKey {
  privateKeyPem: string;
  publicKeyBase64: string;
}

export interface KeyDeps {
  /** Seals private keys at rest. */
  boxKey: Key;
  generateDkimKey: (algorithm: DkimAlgorithm) => Promise<GeneratedKey>;
}

/** Random bytes of a token, which is a DNS label of 26 characters. */
const TOKEN_BYTES = 16;

/** Says that the master key does not fit the database, and what to do. */
export const WRONG_KEY =
  "the master key is not the one that this database was sealed with: put that master.key into DATA_DIR and leave MASTER_KEY unset, or set MASTER_KEY to what it holds. To change the key, set MASTER_KEY_OLD to that one as well, and call `postrider master-key rotate`. If it is lost, `postrider master-key reset` replaces the secrets";

/** Makes a random DNS label. */
export function newToken(): string {
  return encodeBase32(randomBytes(TOKEN_BYTES));
}

/** The selectors of each algorithm. The first key uses the first one, and each rotation changes to the other. */
export const SELECTORS = { rsa: ["pr1", "pr2"], ed25519: ["pe1", "pe2"] } as const;

/** Makes a DKIM key with its private key sealed, under the given token or a new one. */
export async function makeDkimKey(
  deps: KeyDeps,
  key: Pick<DkimKeyRecord, "domainId" | "selector" | "algorithm" | "status"> & { token?: string | undefined },
  now: number,
): Promise<DkimKeyRecord> {
  const { privateKeyPem, publicKeyBase64 } = await deps.generateDkimKey(key.algorithm);
  return {
    ...key,
    token: key.token ?? newToken(),
    publicKey: publicKeyBase64,
    sealedPrivateKey: seal(deps.boxKey, privateKeyPem),
    retireAt: null,
    createdAt: now,
  };
}

/**
 * Makes the installation's own key, for the onboarding domain, if there is none.
 * @throws SettingsError if the key in the database was sealed with another master key
 */
export async function ensureInstallationKey(deps: KeyDeps & { db: Db }, now: number): Promise<void> {
  const own = await installationKey(deps.db);
  if (own !== null) return requireOpens(deps.boxKey, own.sealedPrivateKey);
  const first = { domainId: null, selector: SELECTORS.rsa[0], algorithm: "rsa", status: "active" } as const;
  const key = await makeDkimKey(deps, first, now);
  await deps.db.write([insertInstallationKey(key)]);
}

/**
 * Checks that the master key opens the sealed key. Otherwise a database restored without its master key would accept
 * messages that can never be signed.
 */
function requireOpens(boxKey: Key, sealed: string): void {
  try {
    unseal(boxKey, sealed);
  } catch (cause) {
    throw new SettingsError(WRONG_KEY, { cause });
  }
}
