import { randomInt } from "node:crypto";
import { actingAs } from "../../core/actor.ts";
import { addressKey } from "../../core/addresses.ts";
import { newId, randomBase62 } from "../../core/ids.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import {
  insertSignInLink,
  openSession,
  takeSignInLink,
  touchSession,
} from "../../store/projects/member-sessions.ts";
import { findMember, type Member } from "../../store/projects/members.ts";
import { removeSuppression } from "../../store/projects/suppressions.ts";
import { hashSecret } from "./api-keys.ts";
import { type Mailing, mailProject, type OwnMail, sendOwnMail } from "./service-mail.ts";
import { START_LINK_MS, startUrl } from "./start-link.ts";

/**
 * Maximum number of links of a member that work at a time, so that a stranger cannot flood a mailbox. If no further one is
 * made, one that works is in the mailbox: with a limit per hour, a stranger could keep a member out.
 */
export const MAX_LIVE_LINKS = 2;
/** Maximum number of sessions of a member. The one that was used least recently ends. */
export const MAX_SESSIONS = 20;
/** Longest user agent that is kept, characters. */
const MAX_USER_AGENT_CHARS = 200;
/** Milliseconds after which a session of a member ends if it is not used. */
export const MEMBER_SESSION_MS = 7 * 24 * HOUR_MS;
/** Shortest time between two prolongations of a session, milliseconds. */
const PROLONG_EVERY_MS = HOUR_MS;
/** 190 random bits. */
const TOKEN_CHARS = 32;

/** Makes a link for a member. Returns its token; null if the member has asked for too many. */
export async function newSignInLink({ db, clock }: Store, memberId: string): Promise<string | null> {
  const now = clock.now();
  const token = randomBase62(TOKEN_CHARS);
  const link = { tokenHash: hashSecret(token), memberId, expiresAt: now + START_LINK_MS };
  return (await insertSignInLink(db, link, now, MAX_LIVE_LINKS)) ? token : null;
}

/** Longest wait before an address is looked up, milliseconds. */
const MAX_DELAY_MS = 2000;

/**
 * Sends a link to the member with that address, if there is one who is not disabled. Waits first, for a random time: the
 * work for a member slows the requests around it, which would tell a stranger that there is one.
 */
export async function mailLinkTo(deps: Mailing, email: string): Promise<void> {
  await new Promise<void>((resolve) => void deps.clock.after(randomInt(MAX_DELAY_MS), resolve));
  const member = await findMember(deps.db, addressKey(email));
  if (member !== null && member.status !== "disabled") await mailSignInLink(deps, member);
}

/**
 * Sends a link that signs the member in. In capture mode it is also in the log.
 */
export async function mailSignInLink(deps: Mailing, member: Member): Promise<void> {
  const token = await newSignInLink(deps, member.id);
  if (token === null) return;
  const project = await mailProject(deps, member.accountId);
  const url = startUrl(deps.publicUrl, token);
  if (deps.captures) log("members").info("link to sign in", { email: member.email, url });
  // A bounce or a complaint there would end all links for good, because no key opens that project.
  if (!deps.captures) await removeSuppression(deps.db, project.id, addressKey(member.email));
  await sendOwnMail(deps, project, [mailWith(deps, member, url)]);
}

function mailWith({ publicUrl }: Mailing, { email, status }: Member, url: string): OwnMail {
  const minutes = START_LINK_MS / MINUTE_MS;
  const why = status === "invited" ? `You have been invited to Postrider at ${publicUrl}.\n\n` : "";
  return {
    to: email,
    subject: status === "invited" ? "Your invitation to Postrider" : "Sign in to Postrider",
    text: `${why}Open this link to sign in:\n\n${url}\n\nIt works once, within ${minutes} minutes. The sign-in page sends another one: ${publicUrl}\n\nIf you did not expect this message, ignore it.\n`,
  };
}

/** The browser that signs in. */
export interface Browser {
  ip: string | null;
  userAgent: string | null;
  requestId: string;
}

/** Uses up a link. Returns the id of the new session; null if the link is unknown, used or too old. */
export async function useSignInLink(
  db: Db,
  token: string,
  browser: Browser,
  now: number,
): Promise<string | null> {
  const member = await takeSignInLink(db, hashSecret(token), now);
  return member === null ? null : openMemberSession(db, member, browser, now);
}

/** Opens a session of a member. Returns its id; null if the member is disabled or gone. */
export async function openMemberSession(
  db: Db,
  member: Member,
  { ip, userAgent, requestId }: Browser,
  now: number,
): Promise<string | null> {
  const session = {
    id: newId("ses", now),
    memberId: member.id,
    ip,
    userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARS).toWellFormed() ?? null,
    lastUsedAt: now,
    expiresAt: now + MEMBER_SESSION_MS,
    createdAt: now,
  };
  const actor = { type: "member" as const, id: member.id, name: member.email, ip, requestId };
  const opened = await actingAs(actor, () => openSession(db, session, MAX_SESSIONS));
  return opened ? session.id : null;
}

/** Notes that a session was used now, which prolongs it. */
export function useSession(db: Db, id: string, usedAt: number): Promise<void> {
  return touchSession(db, id, usedAt, { lastsMs: MEMBER_SESSION_MS, everyMs: PROLONG_EVERY_MS });
}
