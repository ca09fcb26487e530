import { inboxLocalPart, type SplitAddress } from "../../core/addresses.ts";
import type { ArrivalFacts } from "../../store/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { operatorProject, receivingProject } from "../../store/role-mailboxes.ts";
import { subscriptions } from "../../store/webhook-deliveries.ts";
import { bounceDomain, DMARC_MAILBOX, mxHost, onboardingDomain, SOA_MAILBOX } from "../own-names.ts";

/**
 * A mailbox that is there for everybody to write to, without anybody having made it. Its mail is a message without
 * inbox and thread.
 */
export interface RoleMailbox {
  id: null;
  /** The project whose message it becomes. */
  senderId: string;
  /** Lower case, without a `+label`. */
  address: string;
  /** Whether a DMARC policy refuses nothing here. */
  alwaysTaken: boolean;
}

/** RFC 5321 §4.5.1: in every domain that is served. */
const POSTMASTER = "postmaster";
/** Where the other end complains of what comes from a name of ours (RFC 2142 §4). */
const EVERYWHERE: readonly string[] = [POSTMASTER, "abuse"];
/** The one stands in our SOA, the other in the DMARC record of each domain: both are asked for by us. */
const AT_SERVICE_DOMAIN: readonly string[] = [...EVERYWHERE, SOA_MAILBOX, DMARC_MAILBOX];

/** The role mailboxes of a name of our own: those that mail comes from, or that MX records lead here; null for others. */
function rolesAt(domain: string, serviceDomain: string): readonly string[] | null {
  if (domain === serviceDomain) return AT_SERVICE_DOMAIN;
  const hosts = [mxHost(serviceDomain), bounceDomain(serviceDomain), onboardingDomain(serviceDomain)];
  return hosts.includes(domain) ? EVERYWHERE : null;
}

/** Whether the domain is one of the service's own that take mail for roles, and for nobody else. */
export function isOwnDomain(domain: string, serviceDomain: string): boolean {
  return rolesAt(domain, serviceDomain) !== null;
}

/**
 * The role mailbox behind an address; null where it is none. At the service's own names its mail goes to the operator's
 * project; a customer's postmaster, where there is no inbox of that name, is the customer's own.
 */
export async function findRoleMailbox(
  { db, serviceDomain }: { db: Db; serviceDomain: string },
  { local, domain }: SplitAddress,
): Promise<RoleMailbox | null> {
  const role = inboxLocalPart(local);
  const own = rolesAt(domain, serviceDomain);
  if (!(own ?? [POSTMASTER]).includes(role)) return null;
  const senderId = own === null ? await receivingProject(db, domain) : await operatorProject(db);
  // Whoever is refused everywhere for what his domain's policy says needs one place to ask why.
  const alwaysTaken = role === POSTMASTER;
  return senderId === null ? null : { id: null, senderId, address: `${role}@${domain}`, alwaysTaken };
}

/**
 * What there is to know of a mail for a role mailbox. It begins no thread, and is not looked for among earlier ones: a
 * report that came twice does no harm.
 */
export async function roleFacts(db: Db, { senderId }: RoleMailbox): Promise<ArrivalFacts> {
  return { receiving: true, threadId: null, earlier: [], webhooks: await subscriptions(db, senderId) };
}
