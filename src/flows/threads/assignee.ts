import { invalid } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { getMember } from "../../store/projects/members.ts";
import type { Project } from "../../store/projects/projects.ts";

/**
 * Checks that a thread of the project can be assigned to a member of its account.
 * @throws AppError 422 if there is no such member, or one who is disabled or may not see the project
 */
export async function requireAssignable(
  db: Db,
  project: Pick<Project, "id" | "accountId">,
  memberId: string,
  param = "assigneeId",
): Promise<void> {
  if (!(await isAssignable(db, project, memberId)))
    throw invalid(param, "must be the id of a member who may see this project (GET /v1/members).");
}

/** Returns whether a thread of the project can be assigned to a member of its account. */
export async function isAssignable(
  db: Db,
  project: Pick<Project, "id" | "accountId">,
  memberId: string,
): Promise<boolean> {
  const member = await getMember(db, project.accountId, memberId);
  if (member === null || member.status === "disabled") return false;
  return member.senderIds.length === 0 || member.senderIds.includes(project.id);
}
