import { AppError } from "../../core/errors.ts";
import { type Domain, findDomain } from "../../store/domains/domains.ts";
import { findWildcardAbove } from "../../store/domains/wildcards.ts";
import type { Project } from "../../store/projects/projects.ts";
import { captureInboxDomain } from "../../core/own-names.ts";
import { isInboxDomain } from "./capture-domain.ts";
import { registerDomain } from "./register.ts";
import type { Checking } from "./checking.ts";

/**
 * Returns the project's domain for an inbox; null if it has none. In capture mode, `inbox.` + service domain and
 * the names below it are registered with their first inbox. So receiving can be tried without a domain.
 * @throws AppError 409 if another project of the account has the name
 */
export async function domainForInbox(
  deps: Checking,
  { id: senderId, accountId }: Pick<Project, "id" | "accountId">,
  name: string,
  now: number,
): Promise<Domain | null> {
  const { db, serviceDomain } = deps;
  const known = (await findDomain(db, senderId, name)) ?? (await findWildcardAbove(db, senderId, name));
  if (known !== null || !deps.isCaptureDomain(name) || !isInboxDomain(name, serviceDomain)) return known;
  await registerDomain(deps, { accountId, senderId, name, now, also: () => [] }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.type !== "conflict") throw error;
  });
  const made = await findDomain(db, senderId, name);
  if (made !== null) return made;
  throw new AppError(
    "conflict",
    `Another project has ${name}. Use a name below it, such as mine.${captureInboxDomain(serviceDomain)}.`,
    { code: "duplicate", param: "address" },
  );
}
