import { newId, randomBase62 } from "../core/ids.ts";
import type { ApiKey } from "../store/keys.ts";

const PREFIX_CHARS = 8;
const SECRET_CHARS = 32;

/** Characters shown of a secret that was given to us rather than made here. */
const GIVEN_PREFIX_CHARS = 4;
const LAST_CHARS = 4;

/** A new secret: `pr_`, 8 characters that are shown later on, and 32 that are not: 190 random bits. */
export function newApiSecret(): string {
  return `pr_${randomBase62(PREFIX_CHARS)}_${randomBase62(SECRET_CHARS)}`;
}

/** What of a secret is stored: SHA-256 in hex. It is random enough to need neither salt nor stretching. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

function shownPrefix(secret: string): string {
  return /^(pr_[0-9A-Za-z]{8})_[0-9A-Za-z]{32}$/.exec(secret)?.[1] ?? secret.slice(0, GIVEN_PREFIX_CHARS);
}

/** What a new key is to be. */
export type NewKey = Pick<ApiKey, "accountId" | "name" | "senderId" | "senderExternalId" | "scopes">;

/** A key record for a secret. `now` in milliseconds. */
export function keyFor(secret: string, wanted: NewKey, now: number): ApiKey {
  return {
    ...wanted,
    id: newId("key", now),
    keyPrefix: shownPrefix(secret),
    last4: secret.slice(-LAST_CHARS),
    lastUsedAt: null,
    revokedAt: null,
    createdAt: now,
  };
}
