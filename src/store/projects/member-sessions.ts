import { idCeiling } from "../../core/ids.ts";
import {
  changesRow,
  type ConfigurationQuery,
  type Db,
  firstReturned,
  type Statement,
} from "../engine/client.ts";
import { plain, type Row, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";
import { type Member, MEMBERS } from "./members.ts";
import { type Project, PROJECTS } from "./projects.ts";

/** A browser in which a member has signed in. Times in milliseconds. */
export interface MemberSession {
  id: string;
  memberId: string;
  ip: string | null;
  userAgent: string | null;
  lastUsedAt: number;
  expiresAt: number;
  createdAt: number;
}

const SESSIONS = table<MemberSession>("member_sessions", {
  id: plain("id"),
  memberId: plain("member_id"),
  ip: plain("ip"),
  userAgent: plain("user_agent"),
  lastUsedAt: plain("last_used_at"),
  expiresAt: plain("expires_at"),
  createdAt: plain("created_at"),
});

/** The session of a request, with its member and the projects that the member is limited to. */
export interface PresentedSession {
  session: MemberSession;
  member: Member;
  senders: readonly Project[];
}

function objectOf(names: readonly string[], alias: string): string {
  return `json_object(${names.map((name) => `'${name}', ${alias}.${name}`).join(", ")})`;
}

/** Like a key, it is read for every request as one JSON column. */
const SESSION_BY_ID: ConfigurationQuery<{ json: string }, PresentedSession> = {
  sql: `SELECT json_object('session', ${objectOf(SESSIONS.names, "s")}, 'member', ${objectOf(MEMBERS.names, "m")},
      'senders', (SELECT json_group_array(${objectOf(PROJECTS.names, "p")}) FROM senders p
        WHERE p.account_id = m.account_id AND p.deleted_at IS NULL AND p.id IN (SELECT value FROM json_each(m.sender_ids)))) AS json
    FROM member_sessions s JOIN members m ON m.id = s.member_id WHERE s.id = ?`,
  read({ json }) {
    const { session, member, senders }: { session: Row; member: Row; senders: Row[] } = JSON.parse(json);
    return {
      session: SESSIONS.read(session),
      member: MEMBERS.read(member),
      senders: senders.map(PROJECTS.read),
    };
  },
};

/** Returns the session with that id; null if it has ended or its member is gone. Its times of use may be old. */
export function findSession(db: Db, id: string): Promise<PresentedSession | null> {
  return db.readConfig(SESSION_BY_ID, [id]);
}

/** Returns at most `take` sessions of a member, newest first, at a place. */
export function listSessions(db: Db, memberId: string, place: Place, take: number): Promise<MemberSession[]> {
  const ceiling = idCeiling("ses");
  return SESSIONS.page(db, { where: "member_id = ?", args: [memberId], place, ceiling, take });
}

/**
 * Makes a session, and the member an active one. Old sessions end, so that the member has at most `most`.
 * @returns false if the member is disabled or gone
 */
export async function openSession(db: Db, session: MemberSession, most: number): Promise<boolean> {
  const { memberId, createdAt: now } = session;
  const written = await db.write([
    {
      sql: "UPDATE members SET status = 'active', last_seen_at = ? WHERE id = ? AND status <> 'disabled'",
      args: [now, memberId],
    },
    {
      sql: `DELETE FROM member_sessions WHERE member_id = ?1 AND (expires_at <= ?2 OR id NOT IN
        (SELECT id FROM member_sessions WHERE member_id = ?1 ORDER BY last_used_at DESC, id DESC LIMIT ?3))`,
      args: [memberId, now, most - 1],
    },
    {
      sql: `INSERT INTO member_sessions (${SESSIONS.columns}) SELECT ${SESSIONS.names.map(() => "?").join(", ")}
        WHERE EXISTS (SELECT 1 FROM members WHERE id = ? AND status = 'active')`,
      args: [...SESSIONS.values(session), memberId],
    },
  ]);
  return (written.at(-1)?.changes ?? 0) > 0;
}

/** Returns a session of a member; null if there is none with that id. */
export function getSession(db: Db, memberId: string, id: string): Promise<MemberSession | null> {
  return SESSIONS.first(db, "WHERE member_id = ? AND id = ?", [memberId, id]);
}

/** Ends sessions of a member. @param id one of them; null: all */
export function endSessions(db: Db, memberId: string, id: string | null): Promise<boolean> {
  const sql = "DELETE FROM member_sessions WHERE member_id = ? AND (? IS NULL OR id = ?)";
  return changesRow(db, sql, [memberId, id, id]);
}

/** Ends the session with that id, if there is one. */
export async function endSession(db: Db, id: string): Promise<void> {
  await db.write([{ sql: "DELETE FROM member_sessions WHERE id = ?", args: [id] }]);
}

/**
 * Notes that a session was used. A session that was prolonged longer than `everyMs` ago then ends `lastsMs` from now. That
 * is rare, because it is a change of configuration.
 */
export async function touchSession(
  db: Db,
  id: string,
  usedAt: number,
  { lastsMs, everyMs }: { lastsMs: number; everyMs: number },
): Promise<void> {
  await db.write([
    {
      sql: "UPDATE member_sessions SET last_used_at = MAX(last_used_at, ?) WHERE id = ?",
      args: [usedAt, id],
    },
    {
      sql: "UPDATE member_sessions SET expires_at = ? WHERE id = ? AND expires_at <= ?",
      args: [usedAt + lastsMs, id, usedAt + lastsMs - everyMs],
    },
    {
      sql: `UPDATE members SET last_seen_at = MAX(COALESCE(last_seen_at, 0), ?)
        WHERE id = (SELECT member_id FROM member_sessions WHERE id = ?)`,
      args: [usedAt, id],
    },
  ]);
}

/** A token that signs a member in. Only its hash is stored. */
export interface SignInLink {
  /** SHA-256 in hex. */
  tokenHash: string;
  memberId: string;
  /** Milliseconds. */
  expiresAt: number;
}

/**
 * Stores a link unless the member has `most` that work. Deletes all that have expired. `now` in milliseconds.
 * @returns false if there are too many
 */
export async function insertSignInLink(
  db: Db,
  { tokenHash, memberId, expiresAt }: SignInLink,
  now: number,
  most: number,
): Promise<boolean> {
  const statements: Statement[] = [
    { sql: "DELETE FROM sign_in_links WHERE expires_at <= ?", args: [now] },
    {
      sql: `INSERT INTO sign_in_links (token_hash, member_id, expires_at) SELECT ?, ?, ?
        WHERE (SELECT COUNT(*) FROM sign_in_links WHERE member_id = ?) < ?`,
      args: [tokenHash, memberId, expiresAt, memberId, most],
    },
  ];
  return ((await db.write(statements)).at(-1)?.changes ?? 0) > 0;
}

/** Deletes the link, and returns its member. Null: there is none, it is too old, or the member is disabled. */
export async function takeSignInLink(db: Db, tokenHash: string, now: number): Promise<Member | null> {
  const sql = "DELETE FROM sign_in_links WHERE token_hash = ? AND expires_at > ? RETURNING member_id";
  const [taken] = await db.write([{ sql, args: [tokenHash, now] }]);
  const memberId = firstReturned<{ member_id: string }>(taken)?.member_id;
  if (memberId === undefined) return null;
  return MEMBERS.first(db, "WHERE id = ? AND status <> 'disabled'", [memberId]);
}
