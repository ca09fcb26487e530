import { invalid } from "../../core/errors.ts";
import type { Project } from "../../store/projects/projects.ts";
import { findSuppressions, removeSuppression } from "../../store/projects/suppressions.ts";
import { hiddenProject, type Mailing } from "./service-mail.ts";

/** Maximum characters of a project's name in a message. */
const MAX_NAME_CHARS = 60;

/**
 * Returns the project that a link to the owner of an address is mailed in, which no key of `project` may read. In capture mode it
 * is the project itself, because nothing leaves, and a developer looks for the link there.
 * @param key the address key
 * @throws AppError 422 if the project, or the service itself, must not write to the address
 */
export async function confirmationProject(deps: Mailing, project: Project, key: string): Promise<Project> {
  const { db, clock, captures } = deps;
  const from = captures ? project : await hiddenProject(deps, project.accountId);
  const now = clock.now();
  const own = (await findSuppressions(db, project.id, [key], now)).get(key);
  if (own !== undefined)
    throw invalid("email", "is suppressed in this project. Delete that suppression first.");
  const other = (await findSuppressions(db, from.id, [key], now)).get(key);
  if (other?.reason === "complaint") throw invalid("email", "wants no mail of this service.");
  // A bounce would end all links for good, because no key opens that project.
  if (other !== undefined && !captures) await removeSuppression(db, from.id, key);
  return from;
}

/** Returns a name without what could be read as a link or a sentence of ours: its owner may be anybody. */
export function plainName(name: string): string {
  const words = name.replace(/[^\p{L}\p{M}\p{N}'&-]+/gu, " ").trim();
  return [...words].slice(0, MAX_NAME_CHARS).join("");
}
