import { recipientRule } from "../key-bounds.ts";
import type { SenderFacts } from "./sender.ts";

export const SENDER_LISTS = ["allow", "block"] as const;
export type SenderList = (typeof SENDER_LISTS)[number];

/** Whose mail an inbox takes. It never takes mail of blocked senders. */
export const ACCEPTS = ["anyone", "authenticated", "allowed"] as const;
export type Accept = (typeof ACCEPTS)[number];

/** A sender on a list. */
export interface Listed {
  /** The key of an address, or `@` and a domain. */
  pattern: string;
  list: SenderList;
}

/** Maximum number of listed senders of a project, with those of its inboxes. */
export const MAX_LISTED = 10_000;

/** Returns a pattern in the form that is compared; null if it is neither an address nor `@domain`. */
export const senderPattern = recipientRule;

/** Returns the patterns that an address key matches, the most specific first. `@example.com` means that very domain. */
export function patternsOf(key: string): string[] {
  return key === "" ? [] : [key, key.slice(key.lastIndexOf("@"))];
}

/** The facts about the sender of a message without lists. */
export interface UnlistedSender {
  facts: SenderFacts;
  /** Key of the address in From; empty if there is none. */
  from: string;
  /** Key of the envelope sender; empty for the null sender. */
  envelope: string;
}

/**
 * Returns the facts of a sender by the lists. An entry for the address decides before one for its domain, and of two such entries
 * the block. Only what DMARC proves can be allowed, because anybody can write an allowed address.
 */
export function judged({ facts, from, envelope }: UnlistedSender, listed: readonly Listed[]): SenderFacts {
  const decided = verdict(from, facts.authenticated ? listed : listed.filter(({ list }) => list === "block"));
  if (decided === "allow") return { ...facts, trust: "allowed" };
  const isBlocked = decided === "block" || verdict(envelope, listed) === "block";
  return isBlocked ? { ...facts, trust: "blocked" } : facts;
}

function verdict(key: string, listed: readonly Listed[]): SenderList | null {
  for (const pattern of patternsOf(key)) {
    const lists = listed.filter((one) => one.pattern === pattern).map(({ list }) => list);
    if (lists.length > 0) return lists.includes("block") ? "block" : "allow";
  }
  return null;
}

/** Why an inbox does not take a message. */
export type SenderRefusal = "sender_blocked" | "sender_unauthenticated" | "sender_not_allowed";

/** Returns why an inbox does not take mail of a sender; null if it does. */
export function refusalOf(accept: Accept, { authenticated, trust }: SenderFacts): SenderRefusal | null {
  if (trust === "blocked") return "sender_blocked";
  if (accept === "authenticated" && !authenticated) return "sender_unauthenticated";
  return accept === "allowed" && trust !== "allowed" ? "sender_not_allowed" : null;
}
