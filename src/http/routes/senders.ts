import { type Static, Type } from "@sinclair/typebox";
import type { Config } from "../../config.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { ConstraintError, type Db } from "../../store/client.ts";
import {
  getSender,
  insertSender,
  listSenders,
  type Sender,
  type SenderChanges,
  updateSender,
} from "../../store/senders.ts";
import { created, ok } from "../answer.ts";
import { accountRoute, type Principal, type Route } from "../route.ts";
import { Nullable, PAGE_QUERY, PageOf, showTime, Timestamp } from "../schemas.ts";
import { MAX_NAME_CHARS } from "./api-keys.ts";

const MAX_EXTERNAL_ID_CHARS = 128;
const MAX_QUOTA = 1_000_000_000;

const Tracking = Type.Object({ opens: Type.Boolean(), clicks: Type.Boolean() });

const SenderSchema = Type.Object({
  id: Type.String(),
  externalId: Type.String(),
  name: Type.String(),
  plan: Type.String({ description: "Decides the request rate." }),
  trustTier: Type.String({ description: "Decides the recipients a UTC day." }),
  dailyQuota: Nullable(Type.Integer({ description: "Own limit, where it is lower than the tier's." })),
  tracking: Tracking,
  suspendedAt: Nullable(Timestamp),
  createdAt: Timestamp,
});

const CreateSender = Type.Object({
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  externalId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_EXTERNAL_ID_CHARS,
      pattern: "^[A-Za-z0-9][A-Za-z0-9._:@/-]*$",
      description: "Your own name for the project, unique in the account; derived from `name` when absent.",
    }),
  ),
});

const UpdateSender = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS })),
  plan: Type.Optional(Type.String()),
  trustTier: Type.Optional(Type.String()),
  dailyQuota: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: MAX_QUOTA }))),
  tracking: Type.Optional(Type.Partial(Tracking)),
  suspendedAt: Type.Optional(Nullable(Type.String({ description: "Null lifts a suspension." }))),
});

export interface SenderDeps {
  db: Db;
  config: Pick<Config, "plans" | "tiers" | "defaultPlan" | "defaultTrustTier">;
}

function show(sender: Sender): Static<typeof SenderSchema> {
  return {
    id: sender.id,
    externalId: sender.externalId,
    name: sender.name,
    plan: sender.plan,
    trustTier: sender.trustTier,
    dailyQuota: sender.dailyQuota,
    tracking: { opens: sender.trackOpens, clicks: sender.trackClicks },
    suspendedAt: showTime(sender.suspendedAt),
    createdAt: showTime(sender.createdAt),
  };
}

/** Projects are the account's own affair: a key of one project neither sees nor makes others. */
function requireAccountKey({ senderId }: Principal): void {
  if (senderId !== null)
    throw new AppError("permission_error", "Projects are managed with an account-wide key.");
}

/** A name as an external id; one without Latin letters or digits takes the end of the id instead. */
function derivedExternalId(name: string, id: string): string {
  const slug = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, MAX_EXTERNAL_ID_CHARS);
  return slug === "" ? `project-${id.slice(-8)}` : slug;
}

function newSender(
  { config }: SenderDeps,
  accountId: string,
  body: Static<typeof CreateSender>,
  now: number,
) {
  const id = newId("snd", now);
  const externalId = body.externalId ?? derivedExternalId(body.name, id);
  // An external id that looks like an id could pass for another project's in the project header.
  if (externalId.startsWith("snd_")) throw invalid("externalId", "An externalId must not start with snd_.");
  const { defaultPlan: plan, defaultTrustTier: trustTier } = config;
  const defaults = { plan, trustTier, dailyQuota: null, trackOpens: true, trackClicks: true };
  return { ...defaults, id, accountId, externalId, name: body.name, suspendedAt: null, createdAt: now };
}

function suspension(text: string | null | undefined): number | null | undefined {
  if (text === null || text === undefined) return text;
  const at = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw invalid("suspendedAt", "This is no ISO 8601 time.");
  return at;
}

function changesOf({ config }: SenderDeps, body: Static<typeof UpdateSender>): SenderChanges {
  if (body.plan !== undefined && !Object.hasOwn(config.plans, body.plan))
    throw invalid("plan", `One of ${Object.keys(config.plans).join(", ")}.`);
  if (body.trustTier !== undefined && !Object.hasOwn(config.tiers, body.trustTier))
    throw invalid("trustTier", `One of ${Object.keys(config.tiers).join(", ")}.`);
  const wanted = {
    name: body.name,
    plan: body.plan,
    trustTier: body.trustTier,
    dailyQuota: body.dailyQuota,
    trackOpens: body.tracking?.opens,
    trackClicks: body.tracking?.clicks,
    suspendedAt: suspension(body.suspendedAt),
  };
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
}

/** `/v1/senders`. */
export function senderRoutes(deps: SenderDeps): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "POST",
      path: "/v1/senders",
      operationId: "createSender",
      summary: "Make a project",
      scope: "senders:write",
      body: CreateSender,
      answers: { 201: SenderSchema },
      async handle({ principal, body, now, record }) {
        requireAccountKey(principal);
        const sender = newSender(deps, principal.accountId, body, now);
        const answer = created(show(sender));
        try {
          await db.write([insertSender(sender), ...record(answer)]);
        } catch (error) {
          if (error instanceof ConstraintError && error.unique?.startsWith("senders.") === true)
            throw new AppError("conflict", `There is a project with the externalId ${sender.externalId}.`, {
              code: "duplicate",
              param: "externalId",
            });
          throw error;
        }
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/senders",
      operationId: "listSenders",
      summary: "List projects, newest first",
      scope: "senders:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(SenderSchema) },
      async handle({ principal, page }) {
        requireAccountKey(principal);
        const { after, take, answer } = page();
        return ok(answer(await listSenders(db, principal.accountId, after, take), show, ({ id }) => id));
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/senders/:id",
      operationId: "getSender",
      summary: "Read a project",
      scope: "senders:read",
      answers: { 200: SenderSchema },
      async handle({ principal, params }) {
        requireAccountKey(principal);
        const sender = await getSender(db, principal.accountId, params.id);
        if (sender === null) throw notFound("project");
        return ok(show(sender));
      },
    }),
    accountRoute({
      method: "PATCH",
      path: "/v1/senders/:id",
      operationId: "updateSender",
      summary: "Change a project",
      scope: "senders:write",
      body: UpdateSender,
      answers: { 200: SenderSchema },
      async handle({ principal, params, body }) {
        requireAccountKey(principal);
        const sender = await updateSender(db, principal.accountId, params.id, changesOf(deps, body));
        if (sender === null) throw notFound("project");
        return ok(show(sender));
      },
    }),
  ];
}
