import { type Static, Type } from "@sinclair/typebox";
import { existing } from "../../../core/errors.ts";
import { UNBOUND } from "../../../core/key-bounds.ts";
import type { Db } from "../../../store/engine/client.ts";
import {
  endSessions,
  getSession,
  listSessions,
  type MemberSession,
} from "../../../store/projects/member-sessions.ts";
import { getMember, type Member, type Role } from "../../../store/projects/members.ts";
import { requireNoMoreRights } from "../../access/key-rights.ts";
import { noContent, ok } from "../../routing/answer.ts";
import { scopesOf } from "../../routing/roles.ts";
import { accountRoute, type Principal, type Route } from "../../routing/route.ts";
import { Nullable, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";

const SessionSchema = Type.Object(
  {
    id: Type.String(),
    ip: Nullable(Type.String()),
    userAgent: Nullable(Type.String({ examples: ["Mozilla/5.0"] })),
    lastUsedAt: Timestamp,
    expiresAt: Timestamp,
    createdAt: Timestamp,
  },
  { title: "MemberSession" },
);

function showSession(session: MemberSession): Static<typeof SessionSchema> {
  const { id, ip, userAgent, lastUsedAt, expiresAt, createdAt } = session;
  return {
    id,
    ip,
    userAgent,
    lastUsedAt: showTime(lastUsedAt),
    expiresAt: showTime(expiresAt),
    createdAt: showTime(createdAt),
  };
}

/** Throws 403 if the caller has fewer rights than the role: otherwise an invitation would be a way to more rights. */
export function requireRole(principal: Principal, role: Role, verb: string): void {
  requireNoMoreRights(principal, { scopes: scopesOf(role), bounds: UNBOUND }, verb, "member");
}

/** Returns a member of the caller's account. Throws 404 if there is none with that id. */
export async function theMember(db: Db, { accountId }: Principal, id: string): Promise<Member> {
  return existing("member", await getMember(db, accountId, id));
}

/** Returns the routes of the sessions of members. */
export function memberSessionRoutes(db: Db): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/members/:id/sessions",
      operationId: "listMemberSessions",
      summary: "List a member's sessions, newest first",
      description: "The browsers in which the member has signed in. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(SessionSchema) },
      async handle({ principal, params, page }) {
        const { id } = await theMember(db, principal, params.id);
        const { after, take, answer } = page();
        return ok(answer(await listSessions(db, id, after, take), showSession, (session) => session.id));
      },
    }),
    accountRoute({
      method: "DELETE",
      path: "/v1/members/:id/sessions",
      operationId: "endMemberSessions",
      summary: "End all sessions of a member",
      description:
        "They end at their next request. The member can sign in again with a new link. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      answers: { 204: null },
      async handle({ principal, params }) {
        const { id, role } = await theMember(db, principal, params.id);
        requireRole(principal, role, "sign out");
        await endSessions(db, id, null);
        return noContent();
      },
    }),
    accountRoute({
      method: "DELETE",
      path: "/v1/members/:id/sessions/:sessionId",
      operationId: "endMemberSession",
      summary: "End a session of a member",
      description: "It ends at its next request. Requires an account-wide key.",
      scope: "members:write",
      accountWide: true,
      answers: { 204: null },
      async handle({ principal, params }) {
        const { id, role } = await theMember(db, principal, params.id);
        const session = existing("session", await getSession(db, id, params.sessionId));
        requireRole(principal, role, "sign out");
        await endSessions(db, id, session.id);
        return noContent();
      },
    }),
  ];
}
