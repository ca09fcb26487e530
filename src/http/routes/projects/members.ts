import { type Static, Type } from "@sinclair/typebox";
import { addressKey } from "../../../core/addresses.ts";
import { requiredAddress } from "../../../core/messages/address-input.ts";
import { AppError, invalid } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { ConstraintError, type Db } from "../../../store/engine/client.ts";
import { isBroken } from "../../../store/engine/guards.ts";
import { whileGranted } from "../../access/auth.ts";
import {
  deleteMember,
  insertMember,
  listMembers,
  MAX_MEMBERS,
  type Member,
  type MemberChanges,
  ROLES,
  type Role,
  updateMember,
} from "../../../store/projects/members.ts";
import { getProject } from "../../../store/projects/projects.ts";
import { memberSessionRoutes, requireRole, theMember } from "./member-sessions.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { EMAIL, Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";

/** The services of these routes. */
export interface MemberDeps {
  db: Db;
  /** Sends a new member a link to sign in. A failure is only logged, because the sign-in page sends another link. */
  mailLink: (member: Member) => Promise<void>;
}

/** Maximum number of projects that a member is limited to. */
const MAX_SENDER_IDS = 100;

export const RoleSchema = OneOf(
  ROLES,
  "`owner`: everything. `developer`: everything but projects and members. `support`: messages, threads, contacts and suppressions. `viewer`: reads only.",
);
const SenderIds = Type.Array(Type.String({ examples: ["snd_01hzy8"] }), {
  maxItems: MAX_SENDER_IDS,
  description: "Projects that the member is limited to. Empty: all. An owner has no limit.",
  examples: [[]],
});

const MemberSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    role: RoleSchema,
    senderIds: SenderIds,
    status: OneOf(
      ["invited", "active", "disabled"] as const,
      "`invited`: the member has not signed in yet. `disabled`: the member cannot sign in.",
    ),
    invitedBy: Nullable(
      Type.String({
        description: "Id of the key or member. Null: the command line.",
        examples: ["key_01hzy8"],
      }),
    ),
    lastSeenAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "Member" },
);

const CreateMember = Type.Object(
  {
    email: Type.String({ maxLength: 320, ...EMAIL }),
    role: RoleSchema,
    senderIds: Type.Optional(SenderIds),
  },
  { title: "NewMember" },
);

const UpdateMember = Type.Object(
  {
    role: Type.Optional(RoleSchema),
    senderIds: Type.Optional(SenderIds),
    status: Type.Optional(
      OneOf(["active", "disabled"] as const, "`disabled` ends all sessions of the member."),
    ),
  },
  { title: "MemberChanges" },
);

function show(member: Member): Static<typeof MemberSchema> {
  const { id, email, role, senderIds, status, invitedBy, lastSeenAt, createdAt } = member;
  return {
    id,
    email,
    role,
    senderIds: [...senderIds],
    status,
    invitedBy,
    lastSeenAt: showTime(lastSeenAt),
    createdAt: showTime(createdAt),
  };
}

/** Returns the address of a new member. Throws 422 if it is none. */
function emailOf({ email = "" }: { email?: string }): string {
  return addressKey(requiredAddress(email, "email"));
}

/** Returns the projects of a member. Throws 422 for an owner, and for a project that is not the account's. */
async function projectsFor(
  db: Db,
  accountId: string,
  role: Role,
  wanted: readonly string[],
): Promise<string[]> {
  if (role === "owner" && wanted.length > 0)
    throw invalid("senderIds", "must be empty for an owner. Another role can be limited to projects.");
  for (const [index, id] of wanted.entries())
    if ((await getProject(db, accountId, id)) === null)
      throw invalid(`senderIds[${index}]`, "must be the id of a project of this account.");
  return [...new Set(wanted)];
}

/** Returns the routes of `/v1/members`. */
export function memberRoutes(deps: MemberDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), ...memberSessionRoutes(deps.db)];
}

function collectionRoutes({ db, mailLink }: MemberDeps): Route[] {
  return [
    accountRoute({
      method: "POST",
      path: "/v1/members",
      operationId: "createMember",
      stores: {},
      summary: "Invite a person",
      description:
        "The person gets a link by mail that signs in to the dashboard once, within 15 minutes. The sign-in page sends another one. Requires an account-wide key, which cannot give a role more rights than it has.",
      scope: "members:write",
      accountWide: true,
      examples: { body: { email: "ana@example.com", role: "support" } },
      body: CreateMember,
      rules: emailOf,
      answers: { 201: MemberSchema },
      errors: ["conflict"],
      async handle({ principal, body, now, record }) {
        const { accountId, keyId } = principal;
        const { role } = body;
        requireRole(principal, role, "invite");
        const member: Member = {
          id: newId("mem", now),
          accountId,
          email: emailOf(body),
          role,
          senderIds: await projectsFor(db, accountId, role, body.senderIds ?? []),
          status: "invited",
          invitedBy: keyId,
          lastSeenAt: null,
          createdAt: now,
        };
        const answer = created(show(member));
        const made = [...insertMember(member), ...record(answer)];
        await whileGranted(principal, (guard) => db.write([...guard, ...made])).catch((error: unknown) => {
          if (isBroken(error, "too_many_records"))
            throw new AppError("conflict", `An account has at most ${MAX_MEMBERS} members.`);
          if (error instanceof ConstraintError && error.unique?.startsWith("members.") === true)
            throw new AppError("conflict", "A member has this address already.", {
              code: "duplicate",
              param: "email",
            });
          throw error;
        });
        await mailLink(member);
        return answer;
      },
    }),
    accountRoute({
      method: "GET",
      path: "/v1/members",
      operationId: "listMembers",
      summary: "List members, newest first",
      description: "The people who can sign in to the dashboard. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(MemberSchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listMembers(db, principal.accountId, after, take), show, ({ id }) => id));
      },
    }),
  ];
}

const LAST_OWNER =
  "The account would have no active owner. Make another member an owner first, who must have signed in.";

function itemRoutes({ db }: MemberDeps): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/members/:id",
      operationId: "getMember",
      summary: "Get a member",
      description: "A person's address, role and projects. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      answers: { 200: MemberSchema },
      async handle({ principal, params }) {
        return ok(show(await theMember(db, principal, params.id)));
      },
    }),
    accountRoute({
      method: "PATCH",
      path: "/v1/members/:id",
      operationId: "updateMember",
      summary: "Update a member",
      description:
        "A change holds from the member's next request on. Fields that are absent stay as they are. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      examples: { body: { role: "viewer" } },
      body: UpdateMember,
      answers: { 200: MemberSchema },
      errors: ["conflict"],
      async handle({ principal, params, body }) {
        const member = await theMember(db, principal, params.id);
        const role = body.role ?? member.role;
        for (const one of [member.role, role]) requireRole(principal, one, "change");
        const changes = await changesOf(db, member, role, body);
        const changed = await whileGranted(principal, (guard) =>
          updateMember(db, principal.accountId, member.id, changes, guard),
        );
        if (changed !== null) return ok(show(changed));
        await theMember(db, principal, params.id);
        throw new AppError("conflict", LAST_OWNER, { code: "invalid_state" });
      },
    }),
    accountRoute({
      method: "DELETE",
      path: "/v1/members/:id",
      operationId: "deleteMember",
      summary: "Remove a member",
      description:
        "Ends all sessions of the member at their next request. Keys that the member has made stay. A person whom `OIDC_ALLOW` lets in without an invitation can come back as a new member: disable that member instead. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ principal, params }) {
        const member = await theMember(db, principal, params.id);
        requireRole(principal, member.role, "remove");
        const { accountId } = principal;
        if (await whileGranted(principal, (guard) => deleteMember(db, accountId, member.id, guard)))
          return noContent();
        await theMember(db, principal, params.id);
        throw new AppError("conflict", LAST_OWNER, { code: "invalid_state" });
      },
    }),
  ];
}

/** Returns the fields to change. A member who is enabled before the first sign-in is invited again. */
async function changesOf(
  db: Db,
  member: Member,
  role: Role,
  { status, ...body }: Static<typeof UpdateMember>,
): Promise<MemberChanges> {
  // The projects that stay are not looked up, because one of them may have been deleted. An owner has none.
  const wanted = body.senderIds ?? (role === "owner" ? member.senderIds : undefined);
  const senderIds = wanted === undefined ? undefined : await projectsFor(db, member.accountId, role, wanted);
  const enabled = member.lastSeenAt === null ? "invited" : "active";
  return {
    ...(body.role === undefined ? {} : { role }),
    ...(senderIds === undefined ? {} : { senderIds }),
    ...(status === undefined ? {} : { status: status === "active" ? enabled : status }),
  };
}
