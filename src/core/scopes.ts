import { AppError } from "./errors.ts";

/** Returns whether a key with `held` scopes has the right `scope`. A key without scopes has all rights. */
export function allows(held: readonly string[], scope: string): boolean {
  return held.length === 0 || held.includes(scope);
}

/** Throws 403 `missing_scope` if a key with `held` scopes does not have the right `scope`. */
export function requireScope(held: readonly string[], scope: string): void {
  if (allows(held, scope)) return;
  throw new AppError("permission_error", `This key lacks the scope ${scope}.`, {
    code: "missing_scope",
    param: scope,
  });
}
