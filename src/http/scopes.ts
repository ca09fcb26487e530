import { AppError } from "../core/errors.ts";

/** What a key can be allowed to do. A key with no scopes may do all of it. */
export const SCOPES = [
  "emails:send",
  "emails:read",
  "templates:read",
  "templates:write",
  "contacts:read",
  "contacts:write",
  "domains:read",
  "domains:write",
  "inboxes:read",
  "inboxes:write",
  "threads:read",
  "threads:reply",
  "suppressions:read",
  "suppressions:write",
  "webhooks:read",
  "webhooks:write",
  "api_keys:read",
  "api_keys:write",
  "senders:read",
  "senders:write",
  "metrics:read",
] as const;

export type Scope = (typeof SCOPES)[number];

/** Whether a key with `held` scopes may do what `scope` names. */
export function allows(held: readonly string[], scope: Scope): boolean {
  return held.length === 0 || held.includes(scope);
}

/** Throws 403 `missing_scope` where a key with `held` scopes may not do what `scope` names. */
export function requireScope(held: readonly string[], scope: Scope): void {
  if (allows(held, scope)) return;
  throw new AppError("permission_error", `This key lacks the scope ${scope}.`, {
    code: "missing_scope",
    param: scope,
  });
}
