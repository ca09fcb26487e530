import type { Key } from "../../../core/crypto/key-ring.ts";
import { unseal } from "../../../core/crypto/secretbox.ts";
import { type DkimSigner, dkimPrivateKey } from "../../../mail/auth/dkim.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import type { Db } from "../../../store/engine/client.ts";
import { signingKeys } from "../../../store/messages/sending.ts";

/** Opens the keys that a domain signs with. Returns none if another key sealed them, which the check of the master key reports. */
export async function openSigners(db: Db, boxKey: Key, { senderId, name }: Domain): Promise<DkimSigner[]> {
  const keys = await signingKeys(db, senderId, name);
  try {
    return keys.map(({ selector, sealedPrivateKey }) => ({
      selector,
      privateKey: dkimPrivateKey(unseal(boxKey, sealedPrivateKey)),
    }));
  } catch {
    return [];
  }
}
