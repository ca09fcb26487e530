import { AppError } from "../../core/errors.ts";
import { isWithinBounds, type KeyBounds, UNBOUND } from "../../core/key-bounds.ts";
import type { Principal, Route } from "../routing/route.ts";
import { requireScope } from "../../core/scopes.ts";

/** The rights of a key, as the database has them. */
type KeyRights = Pick<Principal, "scopes" | "senderId"> & KeyBounds;

/**
 * Throws 403 if the key may not use the route. Account, projects and routes decide how all mail leaves, so a key with
 * bounds could get around them there. Such a key, which an agent may have, deletes no data either.
 */
export function requireRights({ scope, alsoScope, accountWide, method }: Route, key: KeyRights): void {
  if (scope !== null) requireScope(key.scopes, scope);
  if (alsoScope !== undefined) requireScope(key.scopes, alsoScope);
  if (accountWide === true && key.senderId !== null)
    throw new AppError(
      "permission_error",
      "This takes an account-wide key: the one of the first start, or one that `postrider keys create --name NAME` makes.",
    );
  const takesUnbound = accountWide === true || scope === "data:delete";
  if (takesUnbound && method !== "GET" && !isWithinBounds(key, UNBOUND))
    throw new AppError(
      "permission_error",
      "A key with restrictions changes neither the account nor its projects and routes, and deletes no data. Use a key without `allowRecipients`, `approval` and `inboxIds`.",
      { param: key.approval ? "approval" : "allowRecipients" },
    );
}

type Rights = Pick<Principal, "scopes" | "bounds">;

function requireNoMoreScopes(
  held: readonly string[],
  others: readonly string[],
  verb: string,
  noun: string,
): void {
  if (held.length === 0) return;
  if (others.length === 0)
    throw new AppError(
      "permission_error",
      `A key with scopes cannot ${verb} a ${noun} that has all scopes.`,
      {
        code: "missing_scope",
        param: "scopes",
      },
    );
  for (const scope of others) requireScope(held, scope);
}

/**
 * Throws 403 if a key, or a member, may do what the caller's key may not: by its scopes, or because the caller's sends are bound more
 * narrowly. The caller may neither make, rename nor revoke such a key.
 */
export function requireNoMoreRights(held: Rights, other: Rights, verb: string, noun = "key"): void {
  requireNoMoreScopes(held.scopes, other.scopes, verb, noun);
  if (isWithinBounds(held.bounds, other.bounds)) return;
  throw new AppError(
    "permission_error",
    `A key can only ${verb} keys with the same restrictions or tighter ones.`,
    {
      param: held.bounds.approval && !other.bounds.approval ? "approval" : "allowRecipients",
    },
  );
}
