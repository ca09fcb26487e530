import { Type } from "@sinclair/typebox";
import { AppError } from "../../core/errors.ts";
import { namedProject, projectOfAccount, UnnamedProject } from "../access/project.ts";
import type { Db } from "../../store/engine/client.ts";
import { listKeys } from "../../store/projects/keys.ts";
import type { CheckedRequest, Principal, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import { Given, ShortText } from "./form/given.ts";
import { listRoute, type Operations, refuseFields, translated, withoutNulls } from "./form/translate.ts";

const PERMISSIONS = ["full_access", "sending_access"] as const;
/** Scopes of each permission. None: every scope. */
const SCOPES: Readonly<Record<(typeof PERMISSIONS)[number], readonly string[]>> = {
  full_access: [],
  sending_access: ["emails:send"],
};

/** Returns the routes of `/resend/api-keys`. */
export function apiKeyRoutes(operations: Operations, db: Db): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path: "/api-keys",
      operation: "createApiKey",
      summary: "Create an API key",
      body: Type.Object({ name: Given(ShortText), permission: Given(OneOf(PERMISSIONS)) }),
      async ask(context) {
        const { name, permission = "full_access" } = withoutNulls(context.body);
        refuseFields(context.body, {
          domain_id: "A key of Postrider is limited to a project and to scopes.",
        });
        return { body: { name, scopes: SCOPES[permission], senderId: await projectFor(db, context) } };
      },
      answer: ({ id, secret }: { id: string; secret: string }) => ({ id, token: secret }),
    }),
    listRoute(operations, {
      path: "/api-keys",
      operation: "listApiKeys",
      summary: "List API keys",
      // A removed key of Resend's is not listed.
      read: ({ principal }, place, take) => listKeys(db, requireKey(principal), "unrevoked", place, take),
      show: (keys) =>
        keys.map(({ id, name, createdAt, lastUsedAt }) => ({
          id,
          name,
          created_at: showTime(createdAt),
          last_used_at: showTime(lastUsedAt),
        })),
    }),
    translated(operations, {
      method: "PATCH",
      path: "/api-keys/:id",
      operation: "renameApiKey",
      summary: "Rename an API key",
      body: Type.Object({ name: Given(ShortText) }),
      ask: ({ params, body }) => ({ params, body: { name: body.name } }),
      answer: ({ id }: { id: string }) => ({ object: "api_key", id }),
    }),
    translated(operations, {
      method: "DELETE",
      path: "/api-keys/:id",
      operation: "revokeApiKey",
      summary: "Revoke an API key",
      answer: (_body, { params }) => ({ object: "api_key", id: params.id, deleted: true }),
    }),
  ];
}

/**
 * Returns the project of a new key: that of the caller's key, or the one in the project header. Resend's clients cannot use an
 * account-wide key for anything else, so none is made.
 */
async function projectFor(db: Db, { principal, request }: CheckedRequest): Promise<string> {
  const { senderId, accountId } = requireKey(principal);
  if (senderId !== null) return senderId;
  const project = await projectOfAccount(db, accountId, namedProject(request.headers));
  if (project !== null) return project.id;
  throw new UnnamedProject();
}

/** Returns the key of a request. Its level makes sure that there is one. */
function requireKey(principal: Principal | null): Principal {
  if (principal === null) throw new AppError("authentication_error", "No API key.");
  return principal;
}
