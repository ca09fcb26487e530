import { AppError } from "../core/errors.ts";
import type { Db } from "../store/engine/client.ts";
import type { PresentedKey } from "../store/keys.ts";
import { findSender, type Sender } from "../store/senders.ts";
import { invalidKey } from "./auth.ts";

/** Names the project that an account-wide key acts for. */
export const PROJECT_HEADER = "X-Service-Product";
const PROJECT_HEADER_ALIAS = "X-Service-Sender";

/**
 * The project a request names in its header, by id or external id; null where it names none. An empty header names none: it is
 * what a client sends that puts a setting there which is not set.
 */
function namedProject(headers: Headers): string | null {
  const name = headers.get(PROJECT_HEADER) || null;
  const alias = headers.get(PROJECT_HEADER_ALIAS) || null;
  if (name !== null && alias !== null && name !== alias)
    throw new AppError("invalid_request", `${PROJECT_HEADER} and ${PROJECT_HEADER_ALIAS} differ.`, {
      param: PROJECT_HEADER,
    });
  return name ?? alias;
}

/**
 * The project a request acts for: a project key's own, or the one that an account-wide key's request names.
 * @throws AppError 400 where it is missing, 403 where a project key names another, 404 where the account has none such
 */
export async function resolveProject(
  db: Db,
  { key, sender }: PresentedKey,
  headers: Headers,
): Promise<Sender> {
  const name = namedProject(headers);
  if (sender !== null) {
    if (name === null || name === sender.id || name === sender.externalId) return sender;
    throw new AppError("permission_error", "This key belongs to another project.", { param: PROJECT_HEADER });
  }
  // A project key whose project is gone must not pass for an account-wide one.
  if (key.senderId !== null) throw invalidKey();
  if (name === null)
    throw new AppError("invalid_request", `An account-wide key names its project in ${PROJECT_HEADER}.`, {
      param: PROJECT_HEADER,
    });
  const found = await findSender(db, key.accountId, name);
  if (found === null) throw new AppError("not_found", "No such project.", { param: PROJECT_HEADER });
  return found;
}
