import { Type } from "@sinclair/typebox";
import { AppError, notFound } from "../../core/errors.ts";
import { hashSecret, keyFor, newApiSecret } from "../../flows/api-keys.ts";
import type { Db } from "../../store/engine/client.ts";
import { type ApiKey, insertKey, listKeys, revokeKey, unrevokedGuard } from "../../store/keys.ts";
import { allOrNothing, isGuardBroken } from "../../store/outbox.ts";
import { getSender, type Sender } from "../../store/senders.ts";
import { created, noContent, ok } from "../answer.ts";
import { invalidKey } from "../auth.ts";
import { accountRoute, type Principal, type Route } from "../route.ts";
import { Name, Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../schemas.ts";
import { requireScope, SCOPES, type Scope } from "../scopes.ts";

const KEY_FIELDS = {
  id: Type.String(),
  name: Type.String(),
  keyPrefix: Type.String({ description: "Non-secret leading part of the key." }),
  last4: Type.String(),
  senderId: Nullable(Type.String()),
  senderExternalId: Type.Optional(Type.String({ description: "Present on a project-scoped key." })),
  scopes: Type.Array(Type.String(), { description: "Empty: every scope." }),
  lastUsedAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
  createdAt: Timestamp,
};
const ApiKeySchema = Type.Object(KEY_FIELDS, { title: "ApiKey" });
const NewApiKeySchema = Type.Object(
  {
    ...KEY_FIELDS,
    secret: Type.String({ description: "Shown this once." }),
  },
  { title: "NewApiKey" },
);

const CreateApiKey = Type.Object({
  name: Name,
  senderId: Type.Optional(
    Nullable(Type.String({ description: "Project the key is scoped to; absent: account-wide." })),
  ),
  scopes: Type.Optional(
    Type.Array(OneOf(SCOPES), {
      maxItems: SCOPES.length,
      description: "What the key may do; absent or empty: everything.",
    }),
  ),
});

function show(key: ApiKey): Record<string, unknown> {
  return {
    id: key.id,
    name: key.name,
    keyPrefix: key.keyPrefix,
    last4: key.last4,
    senderId: key.senderId,
    ...(key.senderExternalId === null ? {} : { senderExternalId: key.senderExternalId }),
    scopes: key.scopes,
    lastUsedAt: showTime(key.lastUsedAt),
    revokedAt: showTime(key.revokedAt),
    createdAt: showTime(key.createdAt),
  };
}

/** No key gives another one rights it lacks itself. */
function requireNoMoreScopes(held: readonly string[], wanted: readonly Scope[]): void {
  if (held.length === 0) return;
  if (wanted.length === 0)
    throw new AppError("permission_error", "A key limited to scopes cannot make one without limits.", {
      code: "missing_scope",
      param: "scopes",
    });
  for (const scope of wanted) requireScope(held, scope);
}

/** The project a new key is for; null: the account. A project key makes keys for its own project alone. */
async function projectFor(db: Db, principal: Principal, wanted: string | null): Promise<Sender | null> {
  if (principal.senderId !== null && wanted !== principal.senderId)
    throw new AppError("permission_error", "A project key can only make keys with its own senderId.", {
      param: "senderId",
    });
  if (wanted === null) return null;
  const sender = await getSender(db, principal.accountId, wanted);
  if (sender === null) throw notFound("project");
  return sender;
}

/** `/v1/api-keys`. */
export function apiKeyRoutes({ db }: { db: Db }): Route[] {
  return [...collectionRoutes(db), revokeRoute(db)];
}

function collectionRoutes(db: Db): Route[] {
  return [
    accountRoute({
      method: "POST",
      path: "/v1/api-keys",
      operationId: "createApiKey",
      summary: "Make an API key",
      scope: "api_keys:write",
      body: CreateApiKey,
      answers: { 201: NewApiKeySchema },
      errors: ["not_found"],
      secretAnswer: true,
      async handle({ body, principal, now, record }) {
        const scopes = [...new Set(body.scopes)];
        const sender = await projectFor(db, principal, body.senderId ?? null);
        requireNoMoreScopes(principal.scopes, scopes);
        const secret = newApiSecret();
        const { accountId, keyId } = principal;
        const owner = { senderId: sender?.id ?? null, senderExternalId: sender?.externalId ?? null };
        const key = keyFor(secret, { accountId, name: body.name.toWellFormed(), ...owner, scopes }, now);
        const answer = created({ ...show(key), secret });
        // Whoever has stolen a key must not make another one of it while it is being revoked.
        const unrevoked = keyId === null ? [] : [allOrNothing(unrevokedGuard(keyId))];
        const write = db.write([...unrevoked, insertKey(key, hashSecret(secret)), ...record(answer)]);
        await write.catch((error: unknown) => {
          throw isGuardBroken(error) ? invalidKey() : error;
        });
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/api-keys",
      operationId: "listApiKeys",
      summary: "List API keys, newest first",
      scope: "api_keys:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(ApiKeySchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        const rows = await listKeys(db, principal.accountId, principal.senderId, after, take);
        return ok(answer(rows, show, (key) => key.id));
      },
    }),
  ];
}

function revokeRoute(db: Db): Route {
  return accountRoute({
    method: "DELETE",
    path: "/v1/api-keys/:id",
    operationId: "revokeApiKey",
    summary: "Revoke an API key",
    description: "Holds from the next request on, and for good.",
    scope: "api_keys:write",
    answers: { 204: null },
    async handle({ principal, params, now }) {
      const { accountId, senderId } = principal;
      if (!(await revokeKey(db, accountId, senderId, params.id, now))) throw notFound("API key");
      return noContent();
    },
  });
}
