import { AppError } from "../../core/errors.ts";
import { isWithinBounds } from "../../core/key-bounds.ts";
import type { Principal } from "../routing/route.ts";
import { requireScope } from "../../core/scopes.ts";

type Rights = Pick<Principal, "scopes" | "bounds">;

function requireNoMoreScopes(held: readonly string[], others: readonly string[], verb: string): void {
  if (held.length === 0) return;
  if (others.length === 0)
    throw new AppError("permission_error", `A key with scopes cannot ${verb} a key that has all scopes.`, {
      code: "missing_scope",
      param: "scopes",
    });
  for (const scope of others) requireScope(held, scope);
}

/**
 * Throws 403 if a key may do what the caller's key may not: by its scopes, or because the caller's sends are bound more
 * narrowly. The caller may neither make, rename nor revoke such a key.
 */
export function requireNoMoreRights(held: Rights, other: Rights, verb: string): void {
  requireNoMoreScopes(held.scopes, other.scopes, verb);
  if (isWithinBounds(held.bounds, other.bounds)) return;
  throw new AppError(
    "permission_error",
    `A key can only ${verb} keys with the same restrictions or tighter ones.`,
    {
      param: held.bounds.approval && !other.bounds.approval ? "approval" : "allowRecipients",
    },
  );
}
