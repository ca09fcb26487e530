import { AppError } from "../../core/errors.ts";
import { allows } from "../../core/scopes.ts";

/** Scopes of keys. A key without scopes has all of them. */
export const SCOPES = [
  "emails:send",
  "emails:read",
  "emails:approve",
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

/** Throws 403 `missing_scope` if a key with `held` scopes does not have the right `scope`. */
export function requireScope(held: readonly string[], scope: string): void {
  if (allows(held, scope)) return;
  throw new AppError("permission_error", `This key lacks the scope ${scope}.`, {
    code: "missing_scope",
    param: scope,
  });
}
