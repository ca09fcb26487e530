import { inboxLocalPart, type SplitAddress, splitAddress } from "../../core/addresses.ts";
import { verpToken } from "../../mail/verp.ts";
import type { Db } from "../../store/engine/client.ts";
import { type InboxRef, inboundRoute } from "../../store/sending.ts";
import { recipientOf } from "../recipient-token.ts";
import { findRoleMailbox, isOwnDomain, type RoleMailbox } from "./role-mailbox.ts";

export interface RouteDeps {
  db: Db;
  serviceDomain: string;
  /** Keys the tokens in return paths. */
  verpKey: Uint8Array;
}

/** Where a mail to one address goes. */
export type InboundTarget =
  | { kind: "inbox"; inbox: InboxRef }
  /** Postmaster and the like. */
  | { kind: "role"; mailbox: RoleMailbox }
  /** A bounce address of ours: the recipient of the message it was made for. */
  | { kind: "bounce"; messageId: string; ord: number }
  /** Where providers send their users' complaints. */
  | { kind: "feedback" }
  /** No domain here receives for that name. */
  | { kind: "no_domain" }
  /** The domain receives, and has no such mailbox. */
  | { kind: "no_mailbox" };

/**
 * Decides where mail to an address goes. Only whole addresses at domains that receive have a place: `%`, `!` and
 * source routes are part of a local part like any other, so nothing is ever relayed (RFC 5321 §3.6.2).
 */
export async function routeAddress(deps: RouteDeps, address: string): Promise<InboundTarget> {
  const split = splitAddress(address);
  if (split === null) return { kind: "no_mailbox" };
  const { local, domain } = split;
  if (domain === deps.serviceDomain && local.toLowerCase() === "fbl") return { kind: "feedback" };
  const token = verpToken(local);
  const named = token === null ? null : recipientOf(deps.verpKey, token);
  // Whatever the domain: it may have stopped receiving since the mail went out, and nobody else can make a token.
  if (named !== null) return { kind: "bounce", ...named };
  if (isOwnDomain(domain, deps.serviceDomain)) return roleOrNobody(deps, split);
  const route = await inboundRoute(deps.db, domain, `${inboxLocalPart(local)}@${domain}`);
  if (!route.receiving) return { kind: "no_domain" };
  return route.inbox === null ? roleOrNobody(deps, split) : { kind: "inbox", inbox: route.inbox };
}

async function roleOrNobody(deps: RouteDeps, split: SplitAddress): Promise<InboundTarget> {
  const mailbox = await findRoleMailbox(deps, split);
  return mailbox === null ? { kind: "no_mailbox" } : { kind: "role", mailbox };
}
