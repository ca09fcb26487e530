import type { Role } from "../../store/projects/members.ts";
import { SCOPES, type Scope } from "./scopes.ts";

const READING = SCOPES.filter((scope) => scope.endsWith(":read"));
const NOT_FOR_DEVELOPERS: ReadonlySet<Scope> = new Set(["senders:write", "members:write"]);

/** Scopes of each role, as keys have them. Empty: every scope. */
const SCOPES_OF: Readonly<Record<Role, readonly Scope[]>> = {
  owner: [],
  developer: SCOPES.filter((scope) => !NOT_FOR_DEVELOPERS.has(scope)),
  support: [
    "emails:send",
    "emails:read",
    "templates:read",
    "contacts:read",
    "contacts:write",
    "domains:read",
    "inboxes:read",
    "threads:read",
    "threads:reply",
    "drafts:write",
    "suppressions:read",
    "suppressions:write",
    "webhooks:read",
    // Without it, the dashboard could not list the projects to choose from.
    "senders:read",
    "metrics:read",
  ],
  viewer: READING,
};

/** Returns the scopes of a role. Empty: every scope. */
export function scopesOf(role: Role): readonly Scope[] {
  return SCOPES_OF[role];
}
