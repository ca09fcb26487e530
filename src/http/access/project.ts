import { AppError } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import type { PresentedKey } from "../../store/projects/keys.ts";
import { findProject, getProject, type Project } from "../../store/projects/projects.ts";
import { invalidKey } from "./auth.ts";

/** Names the project for which an account-wide key acts. */
export const PROJECT_HEADER = "X-Service-Product";
const PROJECT_HEADER_ALIAS = "X-Service-Sender";
/** Names it in the URL of a request that a browser makes by itself. */
export const PROJECT_PARAM = "project";

/**
 * Returns the id or external id in the request's project header, or null if there is none. An empty header counts as
 * none, because clients send it if their own setting is empty.
 */
export function namedProject(headers: Headers): string | null {
  const name = headers.get(PROJECT_HEADER) || null;
  const alias = headers.get(PROJECT_HEADER_ALIAS) || null;
  if (name !== null && alias !== null && name !== alias)
    throw new AppError("invalid_request", `${PROJECT_HEADER} and ${PROJECT_HEADER_ALIAS} differ.`, {
      param: PROJECT_HEADER,
    });
  return name ?? alias;
}

/**
 * Returns the project of a request: a project key's own, or the one that the request of an account-wide key names.
 * @param name id or external id in the request; null if it names none
 * @throws AppError 400 if it is missing, 403 if a project key names another one, 404 if the account has no such
 * project
 */
export async function resolveProject(
  db: Db,
  { key, sender }: PresentedKey,
  name: string | null,
): Promise<Project> {
  if (sender !== null) return ownProject(sender, name);
  // If the project of a key is gone, the key must not count as account-wide.
  if (key.senderId !== null) throw invalidKey();
  const found = await projectOfAccount(db, key.accountId, name);
  if (found === null) throw new UnnamedProject();
  return found;
}

/** The 400 for an account-wide key whose request names no project. */
export class UnnamedProject extends AppError {
  constructor() {
    super(
      "invalid_request",
      `An account-wide key names its project in the header ${PROJECT_HEADER}. GET /v1/senders lists the projects.`,
      { param: PROJECT_HEADER },
    );
  }
}

/**
 * Returns a project key's own project.
 * @throws AppError 403 if the request names another
 */
export function ownProject(project: Project, name: string | null): Project {
  if (name === null || name === project.id || name === project.externalId) return project;
  throw new AppError("permission_error", "This key belongs to another project.", { param: PROJECT_HEADER });
}

/**
 * Returns the project that an account-wide key's request names; null if it names none.
 * @throws AppError 404 if the account has no such project
 */
export async function projectOfAccount(
  db: Db,
  accountId: string,
  name: string | null,
): Promise<Project | null> {
  if (name === null) return null;
  const found = await findProject(db, accountId, name);
  if (found === null) throw new AppError("not_found", "No such project.", { param: PROJECT_HEADER });
  return found;
}

/**
 * Returns the project of a request to a route of the account: a project key's own, or the one that it names. Null: it is for the
 * whole account.
 * @throws AppError 403, 404
 */
export async function projectOf(
  db: Db,
  principal: Pick<PresentedKey["key"], "accountId" | "senderId">,
  name: string | null,
): Promise<Project | null> {
  if (principal.senderId === null) return projectOfAccount(db, principal.accountId, name);
  const own = await getProject(db, principal.accountId, principal.senderId);
  return own === null ? null : ownProject(own, name);
}
