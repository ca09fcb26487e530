import type { Key } from "../../core/crypto/key-ring.ts";
import { catchAllOf, inboxLocalPart, type SplitAddress, splitAddress } from "../../core/addresses.ts";
import { COMPLAINT_MAILBOX } from "../../core/own-names.ts";
import { verpToken } from "../../mail/verp.ts";
import { type Db, queryAfterSync } from "../../store/engine/client.ts";
import {
  inboxAt,
  type InboxRef,
  type ReceivingDomain,
  receivingDomain,
} from "../../store/messages/sending.ts";
import { hasTokenForm, recipientOf } from "../mime/recipient-token.ts";
import { unsubscribedByMail } from "../mime/unsubscribe.ts";
import { findRoleMailbox, isOwnDomain, type RoleMailbox } from "./role-mailbox.ts";

export interface RouteDeps {
  db: Db;
  serviceDomain: string;
  /** Key of the tokens in return paths. */
  verpKey: Key;
  /** Key of the tokens in unsubscribe links and addresses. */
  unsubscribeKey: Key;
}

/** The destination of a message to one address. */
export type InboundTarget =
  | { kind: "inbox"; inbox: InboxRef }
  /** A role address, such as postmaster. */
  | { kind: "role"; mailbox: RoleMailbox }
  /** Our bounce address, for the recipient of a sent message. */
  | { kind: "bounce"; messageId: string; ord: number }
  /** The address next to the unsubscribe link of a recipient. */
  | { kind: "unsubscribe"; messageId: string; ord: number }
  /** The address for complaints of providers' users. */
  | { kind: "feedback" }
  /** The domain does not receive here. */
  | { kind: "no_domain" }
  /** The domain receives, but has no such mailbox. */
  | { kind: "no_mailbox" };

/**
 * Routes an address. `%`, `!` and source routes are ordinary parts of a local part, so nothing is relayed
 * (RFC 5321 §3.6.2).
 */
export async function routeAddress(deps: RouteDeps, address: string): Promise<InboundTarget> {
  const split = splitAddress(address);
  if (split === null) return { kind: "no_mailbox" };
  const { local, domain } = split;
  if (domain === deps.serviceDomain && local.toLowerCase() === COMPLAINT_MAILBOX) return { kind: "feedback" };
  const token = verpToken(local);
  const named = token === null ? null : recipientOf(deps.verpKey, token);
  // At any domain, because it may have stopped receiving since the message was sent, and tokens cannot be forged.
  if (named !== null) return { kind: "bounce", ...named };
  const leaving = unsubscribedByMail(deps.unsubscribeKey, local);
  if (leaving !== null) return { kind: "unsubscribe", ...leaving };
  if (isOwnDomain(domain, deps.serviceDomain)) return roleTarget(deps, split);
  const receiving = await receivingDomain(deps.db, domain);
  return receiving === null ? atReturnPath(deps, split) : atDomain(deps, split, receiving);
}

/** A catch-all gets what no other mailbox takes. It gets no report of ours whose token was damaged on the way. */
async function atDomain(
  deps: RouteDeps,
  split: SplitAddress,
  { id: domainId, senderId }: ReceivingDomain,
): Promise<InboundTarget> {
  const address = `${inboxLocalPart(split.local)}@${split.domain}`;
  const inbox = await inboxAt(deps.db, domainId, address);
  if (inbox !== null) return { kind: "inbox", inbox };
  const target = await roleTarget(deps, split, senderId);
  if (target.kind !== "no_mailbox" || hasTokenForm(split.local)) return target;
  const catchAll = await inboxAt(deps.db, domainId, catchAllOf(address));
  return catchAll === null ? target : { kind: "inbox", inbox: catchAll };
}

/** The host of a domain's own return path has the mailbox of every host that takes mail (RFC 5321 §4.5.1), and no other. */
async function atReturnPath(deps: RouteDeps, split: SplitAddress): Promise<InboundTarget> {
  const mailbox = await findRoleMailbox(deps, split);
  return mailbox === null ? { kind: "no_domain" } : { kind: "role", mailbox };
}

async function roleTarget(deps: RouteDeps, split: SplitAddress, receiver?: string): Promise<InboundTarget> {
  const mailbox = await findRoleMailbox(deps, split, receiver);
  return mailbox === null ? { kind: "no_mailbox" } : { kind: "role", mailbox };
}

/** Routes an address. Syncs a replica before it reports an unknown one, because that refusal is permanent. */
export function routeAfterSync(deps: RouteDeps, address: string): Promise<InboundTarget> {
  return queryAfterSync(deps.db, () => routeAddress(deps, address), isUnknown);
}

/** Returns true if no mailbox has the address. */
export function isUnknown({ kind }: InboundTarget): boolean {
  return kind === "no_domain" || kind === "no_mailbox";
}
