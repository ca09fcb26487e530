import { type Static, Type } from "@sinclair/typebox";
import { existing } from "../../../core/errors.ts";
import { volumeOfDay } from "../../../flows/accept/volume.ts";
import { type Account, getAccount } from "../../../store/projects/accounts.ts";
import type { Db } from "../../../store/engine/client.ts";
import { getKey } from "../../../store/projects/keys.ts";
import { type Project, projectsWithIds } from "../../../store/projects/projects.ts";
import { getMember, type Member } from "../../../store/projects/members.ts";
import { RoleSchema } from "./members.ts";
import { ok } from "../../routing/answer.ts";
import { namedProject, projectOf } from "../../access/project.ts";
import { ACCOUNT_PLAN } from "../../access/rate.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import {
  Nullable,
  OneOf,
  PlanName,
  ShownOneOf,
  showTime,
  TierName,
  Timestamp,
} from "../../routing/schemas.ts";
import { SCOPES } from "../../routing/scopes.ts";
import type { Configured } from "../../routing/parts.ts";
import { accountGetRoute, accountUpdateRoute, type SettingsDeps } from "./account-settings.ts";

const AccountSchema = Type.Object(
  {
    id: Type.String(),
    ownerEmail: Type.String({ description: "The only address that test mode delivers to." }),
  },
  { title: "Account" },
);

const MeSchema = Type.Object(
  {
    account: AccountSchema,
    key: Type.Object({
      id: Nullable(Type.String({ description: "Null for the command line on the service's own machine." })),
      name: Nullable(Type.String()),
      scopes: Type.Array(ShownOneOf(SCOPES), { description: "Empty: every scope." }),
      senderId: Nullable(Type.String({ description: "Null for an account-wide key." })),
    }),
    member: Nullable(
      Type.Object(
        {
          id: Type.String(),
          email: Type.String(),
          role: RoleSchema,
          projects: Type.Array(
            Type.Object({
              id: Type.String(),
              externalId: Type.String(),
              name: Type.String(),
              suspendedAt: Nullable(Timestamp),
            }),
            {
              description:
                "Projects that the person is limited to; the project header names one of them. Empty: all.",
            },
          ),
        },
        { description: "The person who has signed in to the dashboard. Null: a key." },
      ),
    ),
    project: Nullable(
      Type.Object({
        id: Type.String(),
        externalId: Type.String(),
        name: Type.String(),
        plan: PlanName,
        trustTier: TierName,
        suspendedAt: Nullable(Timestamp),
      }),
    ),
    service: Type.Object({
      domain: Type.String({
        description:
          "Domain of the service's own names. `onboarding.<domain>` sends without DNS, and `simulator.<domain>` takes test mail.",
      }),
      delivery: OneOf(["capture", "relay", "mx"], "How outgoing mail leaves. `capture`: it does not."),
    }),
    limits: Type.Object({
      maxRecipients: Type.Integer({ description: "Recipients of a message." }),
      maxMessageBytes: Type.Integer({ description: "Octets of an encoded message." }),
      maxAttachments: Type.Integer({ description: "Attachments of a message." }),
      maxScheduleDays: Type.Integer({ description: "Days ahead that a send can be scheduled." }),
      requestsPerSecond: Nullable(
        Type.Integer({
          minimum: 0,
          description: "Requests per second, on average. Null: there is no limit.",
        }),
      ),
      requestBurst: Nullable(
        Type.Integer({ minimum: 0, description: "Requests at once. Null: there is no limit." }),
      ),
      recipientsPerDay: Nullable(
        Type.Integer({
          minimum: 0,
          description: "Recipients per UTC day. Null: there is no limit, or no project is named.",
        }),
      ),
    }),
  },
  { title: "Me" },
);
type Me = Static<typeof MeSchema>;

/** Returns the routes of `/v1/me` and `/v1/account`. */
export function accountRoutes(deps: Configured & SettingsDeps): Route[] {
  return [meRoute(deps), accountGetRoute(deps), accountUpdateRoute(deps)];
}

/** Returns the route that shows a key what it is and may do. */
export function meRoute(deps: Configured): Route {
  const { db } = deps;
  return accountRoute({
    method: "GET",
    path: "/v1/me",
    operationId: "getMe",
    inboxes: "handler",
    summary: "Get this API key, its project and its limits",
    description:
      "Works with any key. If an account-wide key names a project, the answer has that project and its limits.",
    scope: null,
    answers: { 200: MeSchema },
    errors: ["not_found"],
    async handle({ principal, request, now }) {
      const [account, key, member, project] = await Promise.all([
        requireAccount(db, principal.accountId),
        principal.keyId === null ? null : getKey(db, principal.accountId, null, principal.keyId),
        principal.keyId === null ? null : getMember(db, principal.accountId, principal.keyId),
        projectOf(db, principal, namedProject(request.headers)),
      ]);
      const { id, scopes, senderId } = { id: principal.keyId, ...principal };
      return ok({
        account: showAccount(account),
        key: { id, name: key?.name ?? member?.email ?? null, scopes: [...scopes], senderId },
        member: member === null ? null : await showMember(db, member),
        project: project === null ? null : showProject(project),
        service: { domain: deps.config.serviceDomain, delivery: deps.config.delivery },
        limits: await limitsOf(deps, project, now),
      } satisfies Me);
    },
  });
}

async function requireAccount(db: Db, id: string): Promise<Account> {
  return existing("account", await getAccount(db, id));
}

/** Returns the person, with the projects that still exist of those that limit them. */
async function showMember(db: Db, { id, accountId, email, role, senderIds }: Member) {
  const projects = (await projectsWithIds(db, accountId, senderIds)).map((project) => ({
    id: project.id,
    externalId: project.externalId,
    name: project.name,
    suspendedAt: showTime(project.suspendedAt),
  }));
  return { id, email, role, projects };
}

function showProject({ id, externalId, name, plan, trustTier, suspendedAt }: Project): Me["project"] {
  return { id, externalId, name, plan, trustTier, suspendedAt: showTime(suspendedAt) };
}

function showAccount({ id, ownerEmail }: Account): Static<typeof AccountSchema> {
  return { id, ownerEmail };
}

async function limitsOf(
  { db, config }: Configured,
  project: Project | null,
  now: number,
): Promise<Me["limits"]> {
  const plan = project?.plan ?? ACCOUNT_PLAN;
  const rate = config.plans[Object.hasOwn(config.plans, plan) ? plan : config.defaultPlan] ?? null;
  const { maxRecipients, maxMessageBytes, maxAttachments, maxScheduleDays } = config;
  return {
    maxRecipients,
    maxMessageBytes,
    maxAttachments,
    maxScheduleDays,
    requestsPerSecond: rate?.perSecond ?? null,
    requestBurst: rate?.burst ?? null,
    recipientsPerDay: project === null ? null : (await volumeOfDay(db, config, project, now)).limit,
  };
}
