import { randomBytes } from "node:crypto";
import { encodeBase32 } from "../../core/ids.ts";
import { seal } from "../../core/secretbox.ts";
import type { Db } from "../../store/client.ts";
import { type DkimKeyRecord, hasInstallationKey, insertInstallationKey } from "../../store/dkim-keys.ts";

/** A key pair as it is made. */
export interface GeneratedKey {
  privateKeyPem: string;
  publicKeyBase64: string;
}

export interface KeyDeps {
  /** Seals private keys at rest. */
  boxKey: Uint8Array;
  generateDkimKey: () => Promise<GeneratedKey>;
}

/** Bytes of a token: unguessable, and 26 characters as a DNS label. */
const TOKEN_BYTES = 16;

/** Selectors, in turn: the first key stands at the first, each rotation moves to the other. */
export const SELECTORS = ["pr1", "pr2"] as const;

/** A new DKIM key with its private half sealed, under the token given or a new one. */
export async function makeDkimKey(
  deps: KeyDeps,
  key: Pick<DkimKeyRecord, "domainId" | "selector" | "status"> & { token?: string | undefined },
  now: number,
): Promise<DkimKeyRecord> {
  const { privateKeyPem, publicKeyBase64 } = await deps.generateDkimKey();
  return {
    ...key,
    token: key.token ?? encodeBase32(randomBytes(TOKEN_BYTES)),
    publicKey: publicKeyBase64,
    sealedPrivateKey: seal(deps.boxKey, privateKeyPem),
    retireAt: null,
    createdAt: now,
  };
}

/** Makes the installation's own key, for the onboarding domain, at the first start; later ones change nothing. */
export async function ensureInstallationKey(deps: KeyDeps & { db: Db }, now: number): Promise<void> {
  if (await hasInstallationKey(deps.db)) return;
  const key = await makeDkimKey(deps, { domainId: null, selector: SELECTORS[0], status: "active" }, now);
  await deps.db.write([insertInstallationKey(key)]);
}
