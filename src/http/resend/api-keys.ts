import { AppError, invalid } from "../../core/errors.ts";
import { namedProject, projectOfAccount } from "../access/project.ts";
import type { Db } from "../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { fieldsOf, type Operations, refuseFields, translated, translatedList } from "./translate.ts";

interface ApiKey {
  id: string;
  name: string;
  lastUsedAt: string | null;
  revokedAt: string | null;
  createdAt: string;
}

/** Scopes of each permission. None: every scope. */
const SCOPES: Readonly<Record<string, readonly string[]>> = {
  full_access: [],
  sending_access: ["emails:send"],
};

/** Returns the routes of `/resend/api-keys`. */
export function apiKeyRoutes(operations: Operations, db: Db): Route[] {
  return [
    translated<ApiKey & { secret: string }>(operations, {
      ...{ method: "POST", path: "/api-keys", operation: "createApiKey", summary: "Create an API key" },
      async ask(context) {
        const fields = fieldsOf(context.body);
        refuseFields(fields, { domain_id: "A key of Postrider is limited to a project and to scopes." });
        const { name, permission = "full_access" } = fields;
        const scopes = Object.hasOwn(SCOPES, String(permission)) ? SCOPES[String(permission)] : undefined;
        if (scopes === undefined) throw invalid("permission", 'must be "full_access" or "sending_access".');
        return { body: { name, scopes, senderId: await projectFor(db, context) } };
      },
      answer: ({ id, secret }) => ({ id, token: secret }),
    }),
    translatedList<ApiKey>(operations, {
      ...{ path: "/api-keys", operation: "listApiKeys", summary: "List API keys" },
      // A removed key of Resend's is not listed.
      keep: ({ revokedAt }) => revokedAt === null,
      show: ({ id, name, createdAt, lastUsedAt }) => ({
        ...{ id, name, created_at: createdAt, last_used_at: lastUsedAt },
      }),
    }),
    translated<ApiKey>(operations, {
      ...{ method: "PATCH", path: "/api-keys/:id", operation: "renameApiKey", summary: "Rename an API key" },
      ask: ({ params, body }) => ({ params, body: { name: fieldsOf(body).name } }),
      answer: ({ id }) => ({ object: "api_key", id }),
    }),
    translated(operations, {
      ...{ method: "DELETE", path: "/api-keys/:id", operation: "revokeApiKey", summary: "Revoke an API key" },
      answer: (_body, { params }) => ({ object: "api_key", id: params.id, deleted: true }),
    }),
  ];
}

/**
 * Returns the project of a new key: that of the caller's key, or the one in the project header. Resend's clients cannot use an
 * account-wide key for anything else, so none is made.
 */
async function projectFor(db: Db, { principal, request }: CheckedRequest): Promise<string> {
  if (principal === null) throw new AppError("authentication_error", "No API key.");
  if (principal.senderId !== null) return principal.senderId;
  const project = await projectOfAccount(db, principal.accountId, namedProject(request.headers));
  if (project !== null) return project.id;
  throw new AppError("invalid_request", "An account-wide key names its project in X-Service-Product.");
}
