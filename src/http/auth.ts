import { timingSafeEqual } from "node:crypto";
import { AppError } from "../core/errors.ts";
import { hashSecret } from "../flows/api-keys.ts";
import type { Db } from "../store/engine/client.ts";
import { findKeyByHash, type PresentedKey } from "../store/keys.ts";

/** Longest secret looked at. */
const MAX_SECRET_CHARS = 512;

function refuse(message: string): AppError {
  return new AppError("authentication_error", message);
}

/** 401 for a key that is unknown or revoked, which are answered alike. */
export function invalidKey(): AppError {
  return refuse("This API key is not valid.");
}

/** The secret in an `Authorization: Bearer` header (RFC 6750 §2.1). Throws 401 where there is none. */
function bearer(header: string | null): string {
  if (header === null) throw refuse("No API key: send Authorization: Bearer <API key>.");
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(header)?.[1];
  if (secret === undefined || secret.length > MAX_SECRET_CHARS)
    throw refuse("The Authorization header must be Bearer, followed by an API key.");
  return secret;
}

/**
 * The key presented, read anew for every request so that a revocation holds from the very next one.
 * @throws AppError 401 where it is missing, unknown or revoked; the two last answer alike
 */
export async function authenticate(db: Db, header: string | null): Promise<PresentedKey> {
  const hash = hashSecret(bearer(header));
  const presented = await findKeyByHash(db, hash);
  // Compared once more in constant time: an index lookup alone could tell by its time how much of a hash was right.
  if (presented === null || !timingSafeEqual(Buffer.from(presented.secretHash), Buffer.from(hash)))
    throw invalidKey();
  if (presented.key.revokedAt !== null) throw invalidKey();
  return presented;
}
