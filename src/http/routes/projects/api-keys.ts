import { exampleId } from "../../openapi/examples.ts";
import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, notFound, existing } from "../../../core/errors.ts";
import { type KeyBounds, MAX_ALLOWED_RECIPIENTS, recipientRule } from "../../../core/key-bounds.ts";
import { limitsOf } from "../../../core/quotas.ts";
import { quotaExceeded } from "../../../flows/quotas.ts";
import { withinLimits } from "../../../store/projects/holdings.ts";
import { ACCOUNT_PLAN } from "../../access/rate.ts";
import { requireNoMoreRights } from "../../access/key-rights.ts";
import { hashSecret, keyFor, newApiSecret } from "../../../flows/account/api-keys.ts";
import type { Db } from "../../../store/engine/client.ts";
import {
  type ApiKey,
  getKey,
  insertKey,
  listKeys,
  renameKey,
  revokeKey,
  unrevokedGuard,
} from "../../../store/projects/keys.ts";
import { isBroken, requireGuard } from "../../../store/engine/guards.ts";
import { getProject, type Project } from "../../../store/projects/projects.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { invalidKey } from "../../access/auth.ts";
import { accountRoute, type Principal, type Route } from "../../routing/route.ts";
import {
  Name,
  Nullable,
  OneOf,
  PAGE_QUERY,
  PageOf,
  ShownOneOf,
  showTime,
  Timestamp,
} from "../../routing/schemas.ts";
import { SCOPES } from "../../routing/scopes.ts";
import type { Configured } from "../../routing/parts.ts";

const KEY_FIELDS = {
  id: Type.String(),
  name: Type.String(),
  keyPrefix: Type.String({ description: "The start of the key, which is not secret." }),
  last4: Type.String(),
  senderId: Nullable(Type.String()),
  senderExternalId: Type.Optional(Type.String({ description: "Present on a project-scoped key." })),
  scopes: Type.Array(ShownOneOf(SCOPES), { description: "Empty: every scope.", examples: [["emails:send"]] }),
  allowRecipients: Nullable(
    Type.Array(Type.String(), {
      description: "The addresses and domains that the key may send to. Null: all.",
      examples: [["ana@example.com", "@example.org"]],
    }),
  ),
  approval: Type.Boolean({ description: "Whether each send waits until another key approves it." }),
  lastUsedAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
  createdAt: Timestamp,
  createdBy: Nullable(
    Type.Object(
      {
        type: ShownOneOf(["member", "key"]),
        id: Type.String(),
        name: Nullable(Type.String({ description: "Null: it is gone, or your key is a project's." })),
      },
      { description: "The member or key that made it. Null: the command line or the first start." },
    ),
  ),
};
const ApiKeySchema = Type.Object(KEY_FIELDS, { title: "ApiKey" });
const NEW_KEY_FIELDS = { ...KEY_FIELDS, secret: Type.String({ description: "Shown only in this answer." }) };
const NewApiKeySchema = Type.Object(NEW_KEY_FIELDS, { title: "NewApiKey" });

const CreateApiKey = Type.Object({
  name: Name,
  senderId: Type.Optional(
    Nullable(
      Type.String({
        description: "Project that the key is limited to. If absent, the key is account-wide.",
        examples: ["snd_01hzy8"],
      }),
    ),
  ),
  scopes: Type.Optional(
    Type.Array(OneOf(SCOPES), {
      maxItems: SCOPES.length,
      description: "What the key may do. If absent or empty: everything.",
    }),
  ),
  allowRecipients: Type.Optional(
    Type.Array(
      Type.String({
        maxLength: 320,
        expected: "an email address or @domain",
        examples: ["ana@example.com", "@example.org"],
      }),
      {
        minItems: 1,
        maxItems: MAX_ALLOWED_RECIPIENTS,
        description:
          "The only recipients of the key's sends. `@example.org` means that very domain and none below it.",
      },
    ),
  ),
  approval: Type.Optional(
    Type.Boolean({
      description:
        "If true, the key's sends are `accepted` and wait until another key with `emails:approve` approves them. After 7 days they fail.",
    }),
  ),
});

function show(key: ApiKey, principal: Principal): Record<string, unknown> {
  return {
    id: key.id,
    name: key.name,
    keyPrefix: key.keyPrefix,
    last4: key.last4,
    senderId: key.senderId,
    ...(key.senderExternalId === null ? {} : { senderExternalId: key.senderExternalId }),
    scopes: key.scopes,
    allowRecipients: key.allowRecipients,
    approval: key.approval,
    lastUsedAt: showTime(key.lastUsedAt),
    revokedAt: showTime(key.revokedAt),
    createdAt: showTime(key.createdAt),
    createdBy: makerOf(key, principal),
  };
}

/** Returns the maker of a key. A project's key, which may be a customer's, learns no name of another member or key. */
function makerOf(
  { createdBy, createdByName }: ApiKey,
  { senderId, keyId }: Principal,
): Record<string, unknown> | null {
  if (createdBy === null) return null;
  const seesName = senderId === null || keyId?.startsWith("mem_") === true;
  const type = createdBy.startsWith("key_") ? "key" : "member";
  return { type, id: createdBy, name: seesName ? createdByName : null };
}

/** Returns the entries of `allowRecipients` in the form that is compared. Throws 422 for a wrong one. */
function rulesOf(texts: readonly string[] | undefined): string[] | null {
  const rules = texts?.map((text, index) => {
    const rule = recipientRule(text);
    if (rule !== null) return rule;
    throw invalid(
      `allowRecipients[${index}]`,
      'must be an email address or a domain, such as "ana@example.com" or "@example.org".',
    );
  });
  return rules === undefined ? null : [...new Set(rules)];
}

/** Returns the bounds that a body asks for. Throws 422 for a wrong one. */
function boundsOf({ allowRecipients, approval }: Static<typeof CreateApiKey>): KeyBounds {
  return { allowRecipients: rulesOf(allowRecipients), approval: approval ?? false };
}

/**
 * Returns the project of a new key. Null: the key is account-wide. A project key only makes keys for its own project.
 */
async function projectFor(db: Db, principal: Principal, wanted: string | null): Promise<Project | null> {
  if (principal.senderId !== null && wanted !== principal.senderId)
    throw new AppError("permission_error", "A project key can only create keys with its own senderId.", {
      param: "senderId",
    });
  if (wanted === null) return null;
  return existing("project", await getProject(db, principal.accountId, wanted));
}

/** Returns the routes of `/v1/api-keys`. */
export function apiKeyRoutes(deps: Configured): Route[] {
  return [...collectionRoutes(deps), renameRoute(deps.db), revokeRoute(deps.db)];
}

/**
 * Returns the limits for a new key. A key counts for its project. An account-wide key counts for the account, with
 * the limits of its rate plan.
 */
function keyLimits({ config }: Configured, accountId: string, sender: Project | null) {
  const limits = limitsOf(config.quotas, sender?.plan ?? ACCOUNT_PLAN);
  const within = withinLimits(sender?.id ?? accountId, ["apiKeys", "storedOctets"], limits);
  return { within, refuse: quotaExceeded(limits) };
}

function collectionRoutes(deps: Configured): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "POST",
      path: "/v1/api-keys",
      operationId: "createApiKey",
      stores: { limitedBy: "handler" },
      summary: "Create an API key",
      description:
        "The answer has the `secret`, which is never shown again. A key with a `senderId` works for that project only; a key without one works for all of them.",
      scope: "api_keys:write",
      examples: {
        body: { name: "Production", senderId: exampleId("snd"), scopes: ["emails:send", "emails:read"] },
      },
      body: CreateApiKey,
      answers: { 201: NewApiKeySchema },
      errors: ["not_found"],
      secretAnswer: true,
      async handle({ body, principal, now, record }) {
        const scopes = [...new Set(body.scopes)];
        const sender = await projectFor(db, principal, body.senderId ?? null);
        const bounds = boundsOf(body);
        requireNoMoreRights(principal, { scopes, bounds }, "make");
        const secret = newApiSecret();
        const { accountId, grant } = principal;
        const owner = { senderId: sender?.id ?? null, senderExternalId: sender?.externalId ?? null };
        const name = body.name.toWellFormed();
        const key = keyFor(secret, { accountId, name, ...owner, scopes, ...bounds }, now);
        const answer = created({ ...show(key, principal), secret });
        // If a key is being revoked, it must not make another key at the same time.
        const unrevoked = grant === null ? [] : [requireGuard("key_revoked", unrevokedGuard(grant))];
        const made = [insertKey(key, hashSecret(secret)), ...record(answer)];
        const { within, refuse } = keyLimits(deps, accountId, sender);
        await db.write([...unrevoked, ...made, ...within]).catch((error: unknown) => {
          if (isBroken(error, "key_revoked")) throw invalidKey();
          refuse(error);
        });
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/api-keys",
      operationId: "listApiKeys",
      summary: "List API keys, newest first",
      description: "Revoked keys are listed too. Secrets are not.",
      scope: "api_keys:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(ApiKeySchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        const rows = await listKeys(db, principal, "all", after, take);
        return ok(
          answer(
            rows,
            (key) => show(key, principal),
            (key) => key.id,
          ),
        );
      },
    }),
  ];
}

/** Returns a key that the caller's key may change or revoke. Throws 404 or 403 if there is none. */
async function ownKey(db: Db, principal: Principal, id: string, verb: string): Promise<ApiKey> {
  const key = existing("API key", await getKey(db, principal.accountId, principal.senderId, id));
  // Scopes and bounds never change, so the values that were read are still right.
  requireNoMoreRights(principal, { scopes: key.scopes, bounds: key }, verb);
  return key;
}

function renameRoute(db: Db): Route {
  return accountRoute({
    method: "PATCH",
    path: "/v1/api-keys/:id",
    operationId: "renameApiKey",
    summary: "Rename an API key",
    description:
      "Nothing else of a key can change. A key can only rename keys that may do no more than itself.",
    scope: "api_keys:write",
    body: Type.Object({ name: Name }),
    answers: { 200: ApiKeySchema },
    async handle({ principal, params, body }) {
      const name = body.name.toWellFormed();
      const key = await ownKey(db, principal, params.id, "rename");
      const { accountId, senderId } = principal;
      if (!(await renameKey(db, accountId, senderId, key.id, name))) throw notFound("API key");
      return ok(show({ ...key, name }, principal));
    },
  });
}

function revokeRoute(db: Db): Route {
  return accountRoute({
    method: "DELETE",
    path: "/v1/api-keys/:id",
    operationId: "revokeApiKey",
    summary: "Revoke an API key",
    description:
      "Takes effect with the next request and cannot be undone. A key can only revoke keys that may do no more than itself.",
    scope: "api_keys:write",
    answers: { 204: null },
    async handle({ principal, params, now }) {
      await ownKey(db, principal, params.id, "revoke");
      const { accountId, senderId } = principal;
      if (!(await revokeKey(db, accountId, senderId, params.id, now))) throw notFound("API key");
      return noContent();
    },
  });
}
