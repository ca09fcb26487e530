import { type Static, Type } from "@sinclair/typebox";
import type { Config } from "../../config.ts";
import { AppError, invalid, notFound, readAll } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { NO_TIME, parseTime } from "../../core/date-times.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import {
  getSender,
  insertSender,
  listSenders,
  type Sender,
  type SenderChanges,
  updateSender,
} from "../../store/senders.ts";
import { created, ok } from "../answer.ts";
import { accountRoute, type Route } from "../route.ts";
import { Name, Nullable, PAGE_QUERY, PageOf, showTime, Timestamp } from "../schemas.ts";
import { slugOf } from "../slug.ts";

const MAX_EXTERNAL_ID_CHARS = 128;
const MAX_QUOTA = 1_000_000_000;

const Tracking = Type.Object({ opens: Type.Boolean(), clicks: Type.Boolean() });

const SenderSchema = Type.Object(
  {
    id: Type.String(),
    externalId: Type.String(),
    name: Type.String(),
    plan: Type.String({ description: "Decides the request rate." }),
    trustTier: Type.String({ description: "Decides the recipients a UTC day." }),
    dailyQuota: Nullable(Type.Integer({ description: "Own limit, where it is lower than the tier's." })),
    tracking: Tracking,
    suspendedAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "Sender" },
);

const ExternalId = Type.String({
  minLength: 1,
  maxLength: MAX_EXTERNAL_ID_CHARS,
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@/-]*$",
});

/** What a project may do, and what its mail carries: ours where a new project does not say. */
const SWITCHES = {
  plan: Type.Optional(Type.String()),
  trustTier: Type.Optional(Type.String()),
  dailyQuota: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: MAX_QUOTA }))),
  tracking: Type.Optional(Type.Partial(Tracking)),
};

const CreateSender = Type.Object({
  name: Name,
  externalId: Type.Optional({
    ...ExternalId,
    description: "Your own name for the project, unique in the account; derived from `name` when absent.",
  }),
  ...SWITCHES,
});

const UpdateSender = Type.Object({
  name: Type.Optional(Name),
  externalId: Type.Optional(ExternalId),
  ...SWITCHES,
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

/** A name as an external id; one without Latin letters or digits takes the end of the id instead. */
function derivedExternalId(name: string, id: string): string {
  return slugOf(name, MAX_EXTERNAL_ID_CHARS) || `project-${id.slice(-8)}`;
}

/** An external id that looks like an id could pass for another project's in the project header. */
function refuseIdLike(externalId: string): void {
  if (externalId.startsWith("snd_")) throw invalid("externalId", "An externalId must not start with snd_.");
}

/** Runs a write that may give a project its external id. Throws 409 where another project of the account has it. */
async function withExternalId<Result>(
  externalId: string | undefined,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("senders.") === true)
      throw new AppError("conflict", `There is a project with the externalId ${externalId}.`, {
        code: "duplicate",
        param: "externalId",
      });
    throw error;
  }
}

function newSender(deps: SenderDeps, accountId: string, body: Static<typeof CreateSender>, now: number) {
  const id = newId("snd", now);
  // New projects are not suspended, whatever else a client sends.
  const { suspendedAt: _, ...wanted } = changesOf(deps, body);
  const name = body.name.toWellFormed();
  const externalId = body.externalId ?? derivedExternalId(name, id);
  refuseIdLike(externalId);
  const { defaultPlan: plan, defaultTrustTier: trustTier } = deps.config;
  const defaults = { plan, trustTier, dailyQuota: null, trackOpens: true, trackClicks: true };
  return { ...defaults, ...wanted, id, accountId, externalId, name, suspendedAt: null, createdAt: now };
}

function suspension(text: string | null | undefined): number | null | undefined {
  if (text === null || text === undefined) return text;
  const at = parseTime(text);
  if (at === null) throw invalid("suspendedAt", NO_TIME);
  return at;
}

function oneOf(param: string, name: string | undefined, known: Readonly<Record<string, unknown>>): void {
  if (name !== undefined && !Object.hasOwn(known, name))
    throw invalid(param, `One of ${Object.keys(known).join(", ")}.`);
}

function changesOf({ config }: SenderDeps, body: Static<typeof UpdateSender>): SenderChanges {
  const [, , , suspendedAt] = readAll(
    () => oneOf("plan", body.plan, config.plans),
    () => oneOf("trustTier", body.trustTier, config.tiers),
    () => refuseIdLike(body.externalId ?? ""),
    () => suspension(body.suspendedAt),
  );
  const wanted = {
    name: body.name?.toWellFormed(),
    externalId: body.externalId,
    plan: body.plan,
    trustTier: body.trustTier,
    dailyQuota: body.dailyQuota,
    trackOpens: body.tracking?.opens,
    trackClicks: body.tracking?.clicks,
    suspendedAt,
  };
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
}

/** `/v1/senders`. */
export function senderRoutes(deps: SenderDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps)];
}

function collectionRoutes(deps: SenderDeps): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "POST",
      path: "/v1/senders",
      operationId: "createSender",
      summary: "Make a project",
      scope: "senders:write",
      accountWide: true,
      body: CreateSender,
      rules: (body: Partial<Static<typeof CreateSender>>) => changesOf(deps, body),
      answers: { 201: SenderSchema },
      async handle({ principal, body, now, record }) {
        const sender = newSender(deps, principal.accountId, body, now);
        const answer = created(show(sender));
        const write = () => db.write([insertSender(sender), ...record(answer)]);
        await withExternalId(sender.externalId, write);
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/senders",
      operationId: "listSenders",
      summary: "List projects, newest first",
      scope: "senders:read",
      accountWide: true,
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(SenderSchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listSenders(db, principal.accountId, after, take), show, ({ id }) => id));
      },
    }),
  ];
}

function itemRoutes(deps: SenderDeps): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "GET",
      path: "/v1/senders/:id",
      operationId: "getSender",
      summary: "Read a project",
      scope: "senders:read",
      accountWide: true,
      answers: { 200: SenderSchema },
      async handle({ principal, params }) {
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
      accountWide: true,
      body: UpdateSender,
      rules: (body: Static<typeof UpdateSender>) => changesOf(deps, body),
      answers: { 200: SenderSchema },
      errors: ["conflict"],
      async handle({ principal, params, body }) {
        const changes = changesOf(deps, body);
        const change = () => updateSender(db, principal.accountId, params.id, changes);
        const sender = await withExternalId(changes.externalId, change);
        if (sender === null) throw notFound("project");
        return ok(show(sender));
      },
    }),
  ];
}
