import { keyOfAddress } from "../../core/addresses.ts";
import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { OpenId, OpenIdChecks } from "../../net/openid.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { listAccounts } from "../../store/projects/accounts.ts";
import {
  findMember,
  insertMember,
  MAX_MEMBERS,
  type Member,
  ROLES,
  type Role,
  updateMember,
} from "../../store/projects/members.ts";
import { type Browser, openMemberSession } from "./sign-in.ts";

/** What a browser brings back from the provider. */
export type Checks = OpenIdChecks;

/** An OpenID provider that signs members in. */
export interface Provider {
  client: OpenId;
  rules: ProviderRules;
}

/** Whom an OpenID provider may sign in. */
export interface ProviderRules {
  /** Addresses, and domains as `@example.com`, in lower case, that need no invitation. */
  allow: readonly string[];
  /** The claim that names the role. Null: members keep theirs, and new ones are viewers. */
  roleClaim: string | null;
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * Signs in the person of whom a provider has made claims. A person who is no member, but allowed, becomes one.
 * @returns the id of the new session
 * @throws AppError 403 with the reason if the person may not sign in
 */
export async function signInByClaims(
  db: Db,
  rules: ProviderRules,
  claims: Claims,
  browser: Browser,
  now: number,
): Promise<string> {
  const email = verifiedAddress(claims);
  const named = rules.roleClaim === null ? null : roleIn(claims[rules.roleClaim]);
  const found = await findMember(db, email);
  const member =
    found === null ? await newMember(db, rules, email, named, now) : await withRole(db, found, named);
  const session = await openMemberSession(db, member, browser, now);
  if (session === null) throw refuse(`${email} has been disabled here. An owner can enable the member.`);
  return session;
}

/** Returns the address that a provider claims, verified or not; null if it claims none. */
export function addressIn({ email }: Claims): string | null {
  return keyOfAddress(email);
}

/** Returns the address that the provider has verified. Another one could be anybody's (OpenID Connect Core §5.7). */
function verifiedAddress(claims: Claims): string {
  const email = addressIn(claims);
  if (email === null)
    throw refuse("The provider sent no email address. Allow this service the scope email there.");
  if (claims.email_verified !== true)
    throw refuse("The provider has not verified the email address. Verify it there, then try again.");
  return email;
}

/** Returns the role with most rights that a claim names, as one word or a list; null if it names none. */
function roleIn(claim: unknown): Role | null {
  const names = Array.isArray(claim) ? claim : [claim];
  return ROLES.find((role) => names.includes(role)) ?? null;
}

async function newMember(
  db: Db,
  { allow }: ProviderRules,
  email: string,
  named: Role | null,
  now: number,
): Promise<Member> {
  const [account] = await listAccounts(db, 1);
  if (
    account === undefined ||
    ![email, email.slice(email.lastIndexOf("@"))].some((one) => allow.includes(one))
  )
    throw refuse(`${email} is no member here. An owner can invite the address on the page People.`);
  const member: Member = {
    id: newId("mem", now),
    accountId: account.id,
    email,
    role: named ?? "viewer",
    senderIds: [],
    status: "invited",
    invitedBy: null,
    lastSeenAt: null,
    createdAt: now,
  };
  try {
    await db.write(insertMember(member));
    return member;
  } catch (error) {
    if (isBroken(error, "too_many_records"))
      throw refuse(
        `The account has ${MAX_MEMBERS} members, and no room for ${email}. An owner can remove others.`,
      );
    // Another sign-in of the same person was faster.
    const found = error instanceof ConstraintError ? await findMember(db, email) : null;
    if (found === null) throw error;
    return found;
  }
}

/** Gives a member the role that the provider names. The last owner stays one. An owner has no limit to projects. */
async function withRole(db: Db, member: Member, named: Role | null): Promise<Member> {
  if (named === null || named === member.role || member.status === "disabled") return member;
  const changes = { role: named, ...(named === "owner" ? { senderIds: [] } : {}) };
  return (await updateMember(db, member.accountId, member.id, changes)) ?? member;
}

function refuse(message: string): AppError {
  return new AppError("permission_error", message);
}
