import { ApiKeySchema, CreateApiKey, NewApiKeySchema, showKey } from "../../views/api-key.ts";
import { inboxAddresses } from "../../../store/threads/inboxes.ts";
import { exampleId } from "../../openapi/examples.ts";
import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, notFound, existing } from "../../../core/errors.ts";
import { type KeyBounds, recipientRule } from "../../../core/key-bounds.ts";
import { limitsOf } from "../../../core/quotas.ts";
import { quotaExceeded } from "../../../flows/quotas.ts";
import { withinLimits } from "../../../store/projects/holdings.ts";
import { ACCOUNT_PLAN } from "../../access/rate.ts";
import { requireNoMoreRights } from "../../access/key-rights.ts";
import { hashSecret, keyFor, newApiSecret } from "../../../flows/account/api-keys.ts";
import type { Db, Statement } from "../../../store/engine/client.ts";
import {
  type ApiKey,
  getKey,
  insertKey,
  listKeys,
  renameKey,
  revokeKey,
} from "../../../store/projects/keys.ts";
import { getProject, type Project } from "../../../store/projects/projects.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { whileGranted } from "../../access/auth.ts";
import { accountRoute, type Principal, type Route } from "../../routing/route.ts";
import { Name, PAGE_QUERY, PageOf } from "../../routing/schemas.ts";
import type { Configured } from "../../routing/parts.ts";

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
async function boundsOf(
  db: Db,
  { allowRecipients, approval, inboxIds }: Static<typeof CreateApiKey>,
  sender: Project | null,
): Promise<KeyBounds> {
  return {
    allowRecipients: rulesOf(allowRecipients),
    approval: approval ?? false,
    inboxIds: inboxIds === undefined ? null : await requireInboxes(db, inboxIds, sender),
  };
}

/** Returns the ids, each once. Throws 422 if one is no inbox of the key's project. */
async function requireInboxes(db: Db, ids: readonly string[], sender: Project | null): Promise<string[]> {
  if (sender === null) throw invalid("inboxIds", "needs a senderId, because inboxes belong to a project.");
  const known = await inboxAddresses(db, sender.id, ids);
  const unknown = ids.findIndex((id) => !known.has(id));
  if (unknown >= 0) throw invalid(`inboxIds[${unknown}]`, "must be the id of an inbox of the project.");
  return [...new Set(ids)];
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
        const bounds = await boundsOf(db, body, sender);
        requireNoMoreRights(principal, { scopes, bounds }, "make");
        const secret = newApiSecret();
        const { accountId } = principal;
        const owner = { senderId: sender?.id ?? null, senderExternalId: sender?.externalId ?? null };
        const name = body.name.toWellFormed();
        const key = keyFor(secret, { accountId, name, ...owner, scopes, ...bounds }, now);
        const answer = created({ ...showKey(key, principal), secret });
        const made = [insertKey(key, hashSecret(secret)), ...record(answer)];
        const { within, refuse } = keyLimits(deps, accountId, sender);
        const write = (guard: Statement[]) => db.write([...guard, ...made, ...within]).catch(refuse);
        await whileGranted(principal, write);
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
            (key) => showKey(key, principal),
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
      return ok(showKey({ ...key, name }, principal));
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
