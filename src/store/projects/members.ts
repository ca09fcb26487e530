import { idCeiling } from "../../core/ids.ts";
import { type ConfigurationQuery, type Db, firstReturned, type Statement } from "../engine/client.ts";
import { json, plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";
import type { Project } from "./projects.ts";
import { unassign } from "../threads/thread-changes.ts";

/** Roles of members, from most rights to fewest. */
export const ROLES = ["owner", "developer", "support", "viewer"] as const;
export type Role = (typeof ROLES)[number];

/** A person of an account. Times in milliseconds. */
export interface Member {
  id: string;
  accountId: string;
  /** As `addressKey` spells it. */
  email: string;
  role: Role;
  /** Projects that the member is limited to. Empty: all of the account. */
  senderIds: readonly string[];
  status: "invited" | "active" | "disabled";
  /** Id of the key or member that invited; null: the command line. */
  invitedBy: string | null;
  lastSeenAt: number | null;
  createdAt: number;
}

export const MEMBERS = table<Member>("members", {
  id: plain("id"),
  accountId: plain("account_id"),
  email: plain("email"),
  role: plain("role"),
  senderIds: json("sender_ids"),
  status: plain("status"),
  invitedBy: plain("invited_by"),
  lastSeenAt: plain("last_seen_at"),
  createdAt: plain("created_at"),
});

/** The fields of a member that may be changed. */
export type MemberChanges = Partial<Pick<Member, "role" | "senderIds" | "status">>;

/** Condition that a row is the only active owner of its account. */
const LAST_OWNER = `(role = 'owner' AND status = 'active' AND NOT EXISTS (SELECT 1 FROM members other
  WHERE other.account_id = members.account_id AND other.id <> members.id
    AND other.role = 'owner' AND other.status = 'active'))`;

/** Maximum number of members of an account. */
export const MAX_MEMBERS = 1000;

/**
 * Returns the statements that make a member. If the account has as many as it may have, they break `too_many_records`. If the
 * address has one, they break UNIQUE on `members.email`.
 */
export function insertMember(member: Member): Statement[] {
  return [requireRoom("members WHERE account_id = ?", member.accountId, MAX_MEMBERS), MEMBERS.insert(member)];
}

/** Returns a member of the account; null if there is none with that id. */
export function getMember(db: Db, accountId: string, id: string): Promise<Member | null> {
  return MEMBERS.first(db, "WHERE account_id = ? AND id = ?", [accountId, id]);
}

/** Returns the member with that address, of whatever account. @param email as `addressKey` spells it */
export function findMember(db: Db, email: string): Promise<Member | null> {
  return MEMBERS.first(db, "WHERE email = ?", [email]);
}

const FIRST_MEMBER: ConfigurationQuery<{ id: string }, true> = {
  sql: "SELECT id FROM members LIMIT 1",
  read: () => true,
};

/** Returns whether the installation has members. */
export async function hasMembers(db: Db): Promise<boolean> {
  return (await db.readConfig(FIRST_MEMBER, [])) !== null;
}

/** Returns at most `take` members of the account, newest first, at a place. */
export function listMembers(db: Db, accountId: string, place: Place, take: number): Promise<Member[]> {
  const ceiling = idCeiling("mem");
  return MEMBERS.page(db, { where: "account_id = ?", args: [accountId], place, ceiling, take });
}

/** Condition that a member may see a project. Takes its id. */
const SEES = "(sender_ids = '[]' OR EXISTS (SELECT 1 FROM json_each(sender_ids) WHERE value = ?))";

/** Returns the members of a project's account who may see it and are not disabled, by address. */
export function membersWhoSee(
  db: Db,
  { id, accountId }: Pick<Project, "id" | "accountId">,
): Promise<Member[]> {
  const where = `WHERE account_id = ? AND status <> 'disabled' AND ${SEES} ORDER BY email`;
  return MEMBERS.all(db, where, [accountId, id]);
}

/**
 * Changes a member. One who is disabled loses all sessions and links. Returns the member afterwards; null if there is none,
 * or if the account would have no active owner any more.
 */
export async function updateMember(
  db: Db,
  accountId: string,
  id: string,
  changes: MemberChanges,
  guard: readonly Statement[] = [],
): Promise<Member | null> {
  const { set, values } = MEMBERS.assignments(changes);
  if (set.length === 0) return getMember(db, accountId, id);
  const staysOwner = (changes.role ?? "owner") === "owner" && changes.status !== "disabled";
  const disabled = "member_id IN (SELECT id FROM members WHERE id = ? AND status = 'disabled')";
  const written = await db.write([
    ...guard,
    {
      sql: `UPDATE members SET ${set.join(", ")} WHERE account_id = ? AND id = ?
        ${staysOwner ? "" : `AND NOT ${LAST_OWNER}`} RETURNING ${MEMBERS.columns}`,
      args: [...values, accountId, id],
    },
    { sql: `DELETE FROM member_sessions WHERE ${disabled}`, args: [id] },
    { sql: `DELETE FROM sign_in_links WHERE ${disabled}`, args: [id] },
  ]);
  return MEMBERS.returned(written[guard.length]);
}

/** Threads that a removed member is taken off in one write. */
const THREADS_PER_WRITE = 500;

/** Deletes a member with all sessions and links, and takes the member off all threads. Returns false if there is none, or if it is the last active owner. */
export async function deleteMember(
  db: Db,
  accountId: string,
  id: string,
  guard: readonly Statement[] = [],
): Promise<boolean> {
  const sql = `DELETE FROM members WHERE account_id = ? AND id = ? AND NOT ${LAST_OWNER} RETURNING id`;
  const rest = unassign(id, THREADS_PER_WRITE);
  const results = await db.write([...guard, { sql, args: [accountId, id] }, rest]);
  const [written, first] = results.slice(guard.length);
  for (let changed = first?.changes; changed === THREADS_PER_WRITE; )
    changed = (await db.write([rest]))[0]?.changes;
  return firstReturned(written) !== null;
}
