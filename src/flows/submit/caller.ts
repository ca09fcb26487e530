import { AppError } from "../../core/errors.ts";
import { allows } from "../../core/scopes.ts";
import type { Login } from "../../smtp/session/login.ts";
import type { Db } from "../../store/engine/client.ts";
import type { ApiKey, PresentedKey } from "../../store/projects/keys.ts";
import { findProject, type Project } from "../../store/projects/projects.ts";
import { hashSecret } from "../account/api-keys.ts";
import { presentKey } from "../account/present-key.ts";
import type { SendingKey } from "../accept/accept.ts";

export interface CallerDeps {
  db: Db;
  /** Records the use of a key. `now` in milliseconds. */
  noteKey: (key: ApiKey, now: number) => void;
}

/** Returns how later messages name the key with that secret, or null if it may not send. */
export async function identify(deps: CallerDeps, secret: string, now: number): Promise<string | null> {
  const hash = hashSecret(secret);
  const presented = await sendingKey(deps.db, hash);
  if (presented !== null) deps.noteKey(presented.key, now);
  return presented === null ? null : hash;
}

async function sendingKey(db: Db, hash: string): Promise<PresentedKey | null> {
  const presented = await presentKey(db, hash);
  if (presented === null || !allows(presented.key.scopes, "emails:send")) return null;
  // A submitted message names no thread, so it cannot be an answer of one of the inboxes.
  if (presented.key.inboxIds !== null) return null;
  // If the project of a key is gone, the key must not count as account-wide.
  return presented.sender === null && presented.key.senderId !== null ? null : presented;
}

/** The key of a login, and the project that it acts for. */
export interface SubmittingKey {
  project: Project;
  by: SendingKey;
}

/**
 * Returns the key of a login with the project that it acts for. For an account-wide key the message names it, or else the user name does.
 * Returns null if the key was revoked since the login.
 * @param named X-Postrider-Project of the message
 * @throws AppError 403 if no project is named, or another one than the key's; 404 if there is no such project
 */
export async function submittingKey(
  deps: CallerDeps,
  login: Login,
  named: string | null,
): Promise<SubmittingKey | null> {
  const presented = await sendingKey(deps.db, login.identity);
  if (presented === null) return null;
  const { sender, key } = presented;
  const by = { keyId: key.id, bounds: key };
  if (sender !== null) {
    if (named === null || named === sender.id || named === sender.externalId) return { project: sender, by };
    throw new AppError("permission_error", "This key belongs to another project than X-Postrider-Project.");
  }
  const name = named ?? login.user;
  const found = name === "" ? null : await findProject(deps.db, key.accountId, name);
  if (found !== null) return { project: found, by };
  throw new AppError(
    "not_found",
    "No such project: name it in X-Postrider-Project or as the user name, because the key is account-wide.",
  );
}
