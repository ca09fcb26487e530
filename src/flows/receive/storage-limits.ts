import { limitsOf, type Quotas } from "../../core/quotas.ts";
import type { Statement } from "../../store/engine/client.ts";
import { holdingsOf, planOf, withinStored } from "../../store/projects/holdings.ts";
import { reply, type Reply } from "../../smtp/session/reply.ts";
import type { FreeSpace } from "../free-space.ts";
import type { InboundTarget } from "./route.ts";
import type { Outbox } from "../outbox.ts";

/** The services that take messages in. */
export interface Receiving extends Outbox {
  /** The limits of each plan. If left out, there are none. */
  quotas?: Quotas;
  /** Knows if the disk has room. If left out, it always has. */
  space?: FreeSpace;
}

/** Returns the most octets that a project can store; null for no limit. */
export async function storedLimit({ db, quotas }: Receiving, senderId: string): Promise<number | null> {
  if (quotas === undefined) return null;
  const plan = await planOf(db, senderId);
  return plan === null ? null : limitsOf(quotas, plan).storedOctets;
}

/** Returns true if a project has no room for a message of that size. Other messages may take the room until DATA. */
export async function isFull(deps: Receiving, senderId: string, octets: number): Promise<boolean> {
  const limit = await storedLimit(deps, senderId);
  if (limit === null) return false;
  return (await holdingsOf(deps.db, senderId)).storedOctets + octets >= limit;
}

/** Returns the statements that undo a write if it takes any of the projects over its stored octets. */
export async function withinStoredLimits(deps: Receiving, senderIds: Iterable<string>): Promise<Statement[]> {
  const each = [...new Set(senderIds)].map(async (id) => withinStored(id, await storedLimit(deps, id)));
  return (await Promise.all(each)).flat();
}

/** RFC 3463 §3.3: the mailbox is full. Its owner can make room, so the refusal is temporary. */
export const MAILBOX_FULL = reply(452, "4.2.2", "The mailbox is full, try again later");
/** RFC 3463 §3.4: the mail system is full. */
export const DISK_LOW = reply(452, "4.3.1", "Not enough room on this system, try again later");

/** Returns the reply if a message cannot be stored now; null if it can. Reports are not stored. */
export async function storageRefusal(
  deps: Receiving,
  target: InboundTarget,
  octets: number,
): Promise<Reply | null> {
  if (target.kind !== "inbox" && target.kind !== "role") return null;
  if (deps.space?.low() === true) return DISK_LOW;
  const { senderId } = target.kind === "inbox" ? target.inbox : target.mailbox;
  return (await isFull(deps, senderId, octets)) ? MAILBOX_FULL : null;
}
