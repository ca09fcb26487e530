import { inboxLocalPart, type SplitAddress } from "../../core/addresses.ts";
import type { ArrivalFacts } from "../../store/messages/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { operatorProject, receivingProject } from "../../store/projects/projects.ts";
import { subscriptions } from "../../store/webhooks/webhook-deliveries.ts";
import {
  bounceDomain,
  DMARC_MAILBOX,
  mxHost,
  onboardingDomain,
  SOA_MAILBOX,
  TLS_REPORT_MAILBOX,
} from "../../core/own-names.ts";

/** A mailbox that exists without being created, such as postmaster. Its messages have no inbox and no thread. */
export interface RoleMailbox {
  id: null;
  /** The project that gets its messages. */
  senderId: string;
  /** Lower case, without a `+label`. */
  address: string;
  /** True if DMARC policies refuse nothing here. */
  alwaysTaken: boolean;
  /** True if DMARC and TLS reports that arrive here are added up instead of stored. */
  takesReports: boolean;
}

/** Every domain that receives has this mailbox (RFC 5321 §4.5.1). */
const POSTMASTER = "postmaster";
/** Every name of ours also has the mailbox for complaints (RFC 2142 §4). */
const EVERYWHERE: readonly string[] = [POSTMASTER, "abuse"];
/** The mailboxes that our DMARC and TLS reporting records name. */
const REPORT_MAILBOXES: readonly string[] = [DMARC_MAILBOX, TLS_REPORT_MAILBOX];
/** The service domain also has these, and the one that our SOA names. */
const AT_SERVICE_DOMAIN: readonly string[] = [...EVERYWHERE, SOA_MAILBOX, ...REPORT_MAILBOXES];

/** Returns the role mailboxes of one of our names; null for other domains. */
function rolesAt(domain: string, serviceDomain: string): readonly string[] | null {
  if (domain === serviceDomain) return AT_SERVICE_DOMAIN;
  const hosts = [mxHost(serviceDomain), bounceDomain(serviceDomain), onboardingDomain(serviceDomain)];
  return hosts.includes(domain) ? EVERYWHERE : null;
}

/** Returns true if the domain is one of the service's own, which only have role mailboxes. */
export function isOwnDomain(domain: string, serviceDomain: string): boolean {
  return rolesAt(domain, serviceDomain) !== null;
}

/**
 * Finds the role mailbox of an address; null if it has none. At the service's own names, the operator's project gets the
 * messages. A customer's postmaster belongs to the customer.
 * @param receiver the project that receives for the domain, if the caller knows it
 */
export async function findRoleMailbox(
  { db, serviceDomain }: { db: Db; serviceDomain: string },
  { local, domain }: SplitAddress,
  receiver?: string,
): Promise<RoleMailbox | null> {
  const role = inboxLocalPart(local);
  const own = rolesAt(domain, serviceDomain);
  if (!(own ?? [POSTMASTER]).includes(role)) return null;
  const senderId =
    own === null ? (receiver ?? (await receivingProject(db, domain))) : await operatorProject(db);
  // A sender that every other mailbox refuses by policy must be able to ask why.
  const alwaysTaken = role === POSTMASTER;
  const takesReports = own === AT_SERVICE_DOMAIN && REPORT_MAILBOXES.includes(role);
  return senderId === null
    ? null
    : { id: null, senderId, address: `${role}@${domain}`, alwaysTaken, takesReports };
}

/**
 * Returns the facts for a role mailbox. It has no thread, and duplicates are not searched, because a second report does
 * no harm.
 */
export async function roleFacts(db: Db, { senderId }: RoleMailbox): Promise<ArrivalFacts> {
  return { receiving: true, threadId: null, earlier: [], webhooks: await subscriptions(db, senderId) };
}
