import { isId } from "../../core/ids.ts";
import { MEMBER_SESSION_MS } from "../../flows/account/sign-in.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";

/** Milliseconds after which a session ends if it is not used. */
export const SESSION_MS = 12 * 60 * 60 * 1000;

/** Milliseconds of use after which the cookie is written again, so that not every answer carries one. */
const RENEW_AFTER_MS = 10 * 60 * 1000;

/**
 * Names of the cookie. A browser takes one with the prefix only over https and only from this host, so no other
 * subdomain can set it (RFC 6265bis §4.1.3.2).
 */
const SECURE_NAME = "__Host-postrider";
const PLAIN_NAME = "postrider";

/** Longest value that is opened, characters. */
const MAX_VALUE_CHARS = 512;

/** A browser that has signed in. */
export interface Session {
  /** Id of the key, or of a member's session (`ses_…`). */
  keyId: string;
  /** True if the browser sends the cookie over https only. */
  secure: boolean;
}

interface FoundSession extends Session {
  /** Milliseconds. */
  expiresAt: number;
}

/** Returns the session of a request. `ended`: its cookie is too old, or not ours. Null: it has no cookie. */
export function readSession(headers: Headers, key: Key, now: number): FoundSession | "ended" | null {
  const cookies = cookiesOf(headers);
  const secure = cookies.has(SECURE_NAME);
  const value = cookies.get(secure ? SECURE_NAME : PLAIN_NAME);
  if (value === undefined) return null;
  const opened = openValue(key, value);
  return opened === null || opened.expiresAt <= now ? "ended" : { ...opened, secure };
}

/** Returns the cookies of a request by name. */
export function cookiesOf(headers: Headers): ReadonlyMap<string, string> {
  return new Map((headers.get("cookie") ?? "").split(";").map(nameAndValue));
}

function nameAndValue(pair: string): [string, string] {
  const [name = "", ...value] = pair.split("=");
  return [name.trim(), value.join("=").trim()];
}

function openValue(key: Key, value: string): { keyId: string; expiresAt: number } | null {
  if (value.length > MAX_VALUE_CHARS) return null;
  try {
    const [keyId, expiresAt]: [string, number] = JSON.parse(unseal(key, value));
    return { keyId, expiresAt };
  } catch {
    return null;
  }
}

/** Returns the `Set-Cookie` of a session that is used now. Scripts cannot read it, and other sites cannot send it. */
export function sessionCookie({ keyId, secure }: Session, key: Key, now: number): string {
  const lasts = lifetimeOf(keyId);
  return ownCookie(secure, seal(key, JSON.stringify([keyId, now + lasts])), lasts / 1000);
}

function lifetimeOf(keyId: string): number {
  return isMemberSession(keyId) ? MEMBER_SESSION_MS : SESSION_MS;
}

/** Returns whether the id of a session is that of a member's. */
export function isMemberSession(keyId: string): boolean {
  return isId("ses", keyId);
}

/** Returns the `Set-Cookie` that prolongs a session, or null if its cookie is new. */
export function renewedCookie(session: FoundSession, key: Key, now: number): string | null {
  const fresh = lifetimeOf(session.keyId) - RENEW_AFTER_MS;
  return session.expiresAt - now > fresh ? null : sessionCookie(session, key, now);
}

/** Returns the `Set-Cookie` that removes the cookie. */
export function endedCookie(secure: boolean): string {
  return ownCookie(secure, "", 0);
}

function ownCookie(secure: boolean, value: string, seconds: number): string {
  return cookie(secure ? SECURE_NAME : PLAIN_NAME, value, { secure, seconds, site: "Strict" });
}

/** Returns the `Set-Cookie` of a cookie that scripts cannot read. `seconds`: how long it lasts. */
export function cookie(
  name: string,
  value: string,
  { secure, seconds, site }: { secure: boolean; seconds: number; site: "Strict" | "Lax" },
): string {
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${site}${secure ? "; Secure" : ""}`;
}
