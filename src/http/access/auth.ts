import { timingSafeEqual } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import { hashSecret } from "../../flows/account/api-keys.ts";
import type { Db } from "../../store/engine/client.ts";
import { findKeyByHash, type PresentedKey } from "../../store/keys.ts";

/** Longest secret that is looked up. */
const MAX_SECRET_CHARS = 512;

function refuse(message: string): AppError {
  return new AppError("authentication_error", message);
}

/** Returns the 401 for a key that is unknown or revoked. The answer does not tell which. */
export function invalidKey(): AppError {
  return refuse("This API key is not valid.");
}

/** Returns the secret of an `Authorization: Bearer` header (RFC 6750 §2.1). Throws 401 if there is none. */
function bearer(header: string | null): string {
  if (header === null) throw refuse("No API key: send Authorization: Bearer <API key>.");
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(header)?.[1];
  if (secret === undefined || secret.length > MAX_SECRET_CHARS)
    throw refuse("The Authorization header must be Bearer, followed by an API key.");
  return secret;
}

/**
 * Returns the key of the request. It is read for every request, so a revocation holds from the next one on.
 * @throws AppError 401 if the key is missing, unknown or revoked
 */
export async function authenticate(db: Db, header: string | null): Promise<PresentedKey> {
  const hash = hashSecret(bearer(header));
  const presented = await findKeyByHash(db, hash);
  // Compares in constant time, because the time of an index lookup could tell how much of a hash was right.
  if (presented === null || !timingSafeEqual(Buffer.from(presented.secretHash), Buffer.from(hash)))
    throw invalidKey();
  if (presented.key.revokedAt !== null) throw invalidKey();
  return presented;
}
