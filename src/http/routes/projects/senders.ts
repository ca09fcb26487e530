import { type Static, Type } from "@sinclair/typebox";
import { readPostalAddress } from "../../../core/audience/postal-address.ts";
import { AppError, invalid, readAll, existing } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { trackingSwitches } from "../../../core/messages/tracking.ts";
import { TIME_EXPECTED, parseTime } from "../../../core/time/date-times.ts";
import { ConstraintError } from "../../../store/engine/client.ts";
import {
  getProject,
  insertProject,
  listProjects,
  NEW_PROJECT,
  type ProjectChanges,
  updateProject,
} from "../../../store/projects/projects.ts";
import { senderDeletionRoute } from "./sender-deletion.ts";
import { created, ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Name, Nullable, PAGE_QUERY, PageOf, PlanName, TIME, TierName } from "../../routing/schemas.ts";
import { slugOf } from "../../../core/text.ts";
import type { Configured } from "../../routing/parts.ts";
import { GivenRouteIds, requireRoutes } from "../../views/route-ids.ts";
import {
  NO_ROUTE_IDS,
  Retention,
  PostalAddress,
  SenderSchema,
  showSender,
  SpamCheckFail,
  TextFromHtml,
  Tracking,
} from "../../views/sender.ts";

const MAX_EXTERNAL_ID_CHARS = 128;
const MAX_QUOTA = 1_000_000_000;
const ExternalId = Type.String({
  minLength: 1,
  maxLength: MAX_EXTERNAL_ID_CHARS,
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@/-]*$",
  meaning: "that begins with a letter or digit and has only letters, digits and . _ : @ / -",
  examples: ["customer-42"],
});

/** Settings of a project. A new project has defaults for those that are absent. */
const SWITCHES = {
  plan: Type.Optional(PlanName),
  trustTier: Type.Optional(TierName),
  dailyQuota: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: MAX_QUOTA }))),
  tracking: Type.Optional(Type.Partial(Tracking)),
  textFromHtml: Type.Optional(TextFromHtml),
  routeIds: GivenRouteIds(NO_ROUTE_IDS),
  retention: Type.Optional(Type.Partial(Retention)),
  spamCheckFail: Type.Optional(SpamCheckFail),
  postalAddress: Type.Optional(PostalAddress),
};

const CreateSender = Type.Object(
  {
    name: Name,
    externalId: Type.Optional({
      ...ExternalId,
      description:
        "Your own id for the project, unique in the account. If absent, it is derived from `name`.",
    }),
    ...SWITCHES,
  },
  { title: "NewProject" },
);

const UpdateSender = Type.Object(
  {
    name: Type.Optional(Name),
    externalId: Type.Optional(ExternalId),
    ...SWITCHES,
    suspendedAt: Type.Optional(Nullable(Type.String({ ...TIME, description: "Null lifts a suspension." }))),
  },
  { title: "ProjectChanges" },
);

/** Returns an external id made from a name. If the name has no Latin letters or digits, uses the end of the id. */
function derivedExternalId(name: string, id: string): string {
  return slugOf(name, MAX_EXTERNAL_ID_CHARS) || `project-${id.slice(-8)}`;
}

/** Refuses an external id that looks like an id, because the project header could confuse it with another project. */
function refuseIdLike(externalId: string): void {
  if (externalId.startsWith("snd_"))
    throw invalid("externalId", 'must not start with "snd_", which ids of the service do.');
}

/** Runs a write that may set an external id. Throws 409 if another project of the account has it. */
async function withExternalId<Result>(
  externalId: string | undefined,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("senders.") === true)
      throw new AppError("conflict", `A project with the externalId ${externalId} already exists.`, {
        code: "duplicate",
        param: "externalId",
      });
    throw error;
  }
}

function newSender(deps: Configured, accountId: string, body: Static<typeof CreateSender>, now: number) {
  const id = newId("snd", now);
  // New projects are not suspended, even if the client sends `suspendedAt`.
  const { suspendedAt: _, ...wanted } = changesOf(deps, body);
  const name = body.name.toWellFormed();
  const externalId = body.externalId ?? derivedExternalId(name, id);
  refuseIdLike(externalId);
  const { defaultPlan: plan, defaultTrustTier: trustTier, defaultTracking } = deps.config;
  const defaults = { ...NEW_PROJECT, ...trackingSwitches(defaultTracking), plan, trustTier };
  return { ...defaults, ...wanted, id, accountId, externalId, name, suspendedAt: null, createdAt: now };
}

function suspension(text: string | null | undefined): number | null | undefined {
  if (text === null || text === undefined) return text;
  const at = parseTime(text);
  if (at === null) throw invalid("suspendedAt", TIME_EXPECTED);
  return at;
}

function postalAddressOf(text: string | null | undefined): string | null | undefined {
  if (text === null || text === undefined) return text;
  const address = readPostalAddress(text);
  if (address === null) throw invalid("postalAddress", "must have a letter or digit.");
  return address;
}

function oneOf(param: string, name: string | undefined, known: Readonly<Record<string, unknown>>): void {
  if (name !== undefined && !Object.hasOwn(known, name))
    throw invalid(param, `must be one of ${Object.keys(known).join(", ")}.`);
}

function changesOf({ config }: Configured, body: Static<typeof UpdateSender>): ProjectChanges {
  const [, , , suspendedAt, postalAddress] = readAll(
    () => oneOf("plan", body.plan, config.plans),
    () => oneOf("trustTier", body.trustTier, config.tiers),
    () => refuseIdLike(body.externalId ?? ""),
    () => suspension(body.suspendedAt),
    () => postalAddressOf(body.postalAddress),
  );
  const wanted = {
    name: body.name?.toWellFormed(),
    externalId: body.externalId,
    plan: body.plan,
    trustTier: body.trustTier,
    dailyQuota: body.dailyQuota,
    trackOpens: body.tracking?.opens,
    trackClicks: body.tracking?.clicks,
    textFromHtml: body.textFromHtml,
    contentDays: body.retention?.contentDays,
    eventDays: body.retention?.eventDays,
    spamCheckFail: body.spamCheckFail,
    postalAddress,
    routeIds: body.routeIds === undefined ? undefined : [...new Set(body.routeIds)],
    suspendedAt,
  };
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
}

/** Returns the routes of `/v1/senders`. */
export function senderRoutes(deps: Configured): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), senderDeletionRoute(deps)];
}

function collectionRoutes(deps: Configured): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "POST",
      path: "/v1/senders",
      operationId: "createSender",
      stores: {},
      summary: "Create a project",
      description:
        "A project has its own domains, keys, messages and limits. The API calls it a sender. Requires an account-wide key.",
      scope: "senders:write",
      accountWide: true,
      examples: { body: { name: "Customer 42", externalId: "customer-42" } },
      body: CreateSender,
      rules: (body: Partial<Static<typeof CreateSender>>) => changesOf(deps, body),
      answers: { 201: SenderSchema },
      async handle({ principal, body, now, record }) {
        await requireRoutes(db, principal.accountId, body.routeIds);
        const sender = newSender(deps, principal.accountId, body, now);
        const answer = created(showSender(sender));
        const write = () => db.write([insertProject(sender), ...record(answer)]);
        await withExternalId(sender.externalId, write);
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/senders",
      operationId: "listSenders",
      summary: "List projects, newest first",
      description: "All projects of the account. Requires an account-wide key.",
      scope: "senders:read",
      accountWide: true,
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(SenderSchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        return ok(
          answer(await listProjects(db, principal.accountId, after, take), showSender, ({ id }) => id),
        );
      },
    }),
  ];
}

function itemRoutes(deps: Configured): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      method: "GET",
      path: "/v1/senders/:id",
      operationId: "getSender",
      summary: "Get a project",
      description: "Its name, plan, limits and tracking. Requires an account-wide key.",
      scope: "senders:read",
      accountWide: true,
      answers: { 200: SenderSchema },
      async handle({ principal, params }) {
        return ok(showSender(existing("project", await getProject(db, principal.accountId, params.id))));
      },
    }),
    accountRoute({
      method: "PATCH",
      path: "/v1/senders/:id",
      operationId: "updateSender",
      summary: "Update a project",
      description: "Fields that are absent stay as they are. Requires an account-wide key.",
      scope: "senders:write",
      accountWide: true,
      examples: { body: { name: "Customer 42", dailyQuota: 5000 } },
      body: UpdateSender,
      rules: (body: Static<typeof UpdateSender>) => changesOf(deps, body),
      answers: { 200: SenderSchema },
      errors: ["conflict"],
      async handle({ principal, params, body }) {
        await requireRoutes(db, principal.accountId, body.routeIds);
        const changes = changesOf(deps, body);
        const change = () => updateProject(db, principal.accountId, params.id, changes);
        return ok(showSender(existing("project", await withExternalId(changes.externalId, change))));
      },
    }),
  ];
}
