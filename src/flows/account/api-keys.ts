import { currentActor } from "../../core/actor.ts";
import { newId, randomBase62 } from "../../core/ids.ts";
import { type KeyBounds, UNBOUND } from "../../core/key-bounds.ts";
import type { ApiKey } from "../../store/projects/keys.ts";

const PREFIX_CHARS = 8;
const SECRET_CHARS = 32;

/** Characters shown of a secret that was not made here. */
const GIVEN_PREFIX_CHARS = 4;
const LAST_CHARS = 4;

/** Makes a secret: `pr_`, 8 characters that are shown later, and 32 that are not (190 random bits). */
export function newApiSecret(): string {
  return `pr_${randomBase62(PREFIX_CHARS)}_${randomBase62(SECRET_CHARS)}`;
}

/** Returns the stored form of a secret: SHA-256 in hex. A random secret needs neither salt nor stretching. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

function shownPrefix(secret: string): string {
  return /^(pr_[0-9A-Za-z]{8})_[0-9A-Za-z]{32}$/.exec(secret)?.[1] ?? secret.slice(0, GIVEN_PREFIX_CHARS);
}

export type NewKey = Pick<ApiKey, "accountId" | "name" | "senderId" | "senderExternalId" | "scopes"> &
  Partial<KeyBounds>;

/** Makes the record of a key, made by the one who acts. `now` is in milliseconds. */
export function keyFor(secret: string, wanted: NewKey, now: number): ApiKey {
  const actor = currentActor();
  return {
    ...UNBOUND,
    ...wanted,
    id: newId("key", now),
    keyPrefix: shownPrefix(secret),
    last4: secret.slice(-LAST_CHARS),
    lastUsedAt: null,
    revokedAt: null,
    createdAt: now,
    createdBy: actor.id,
    createdByName: actor.name,
  };
}
