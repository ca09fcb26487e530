import { addressKey } from "../../core/addresses.ts";
import { log } from "../../log.ts";
import { countFields } from "../../mail/raw-headers.ts";
import type { Envelope, MailHandler } from "../../smtp/envelope.ts";
import { type Reply, reply } from "../../smtp/reply.ts";
import { takeFeedback, takeReport } from "../send/report.ts";
import { earlierArrival, type OneByOne, oneByOne } from "./duplicate.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";
import type { Inspect } from "./inspect.ts";
import { recordRefusal, refusedByPolicy } from "./refuse.ts";
import { type InboundTarget, type RouteDeps, routeAddress } from "./route.ts";
import { type TakeDeps, takeMail } from "./take.ts";
import { traceFields } from "./trace.ts";

export interface DoorDeps extends RouteDeps, TakeDeps {
  /** Our name in Received and Authentication-Results: the MX name. */
  hostname: string;
  inspect: Inspect;
}

/** RFC 5321 §6.3: hops after which a mail is taken to go in circles. */
const MAX_RECEIVED = 100;
/**
 * Octets of a report that are read. What it has to tell stands at its beginning, and below that the mail that came back,
 * which may be as large as any; the report is read on this thread.
 */
const MAX_REPORT_OCTETS = 256 * 1024;

const NO_DOMAIN = reply(550, "5.1.2", "No domain here receives mail for that name");
const NO_MAILBOX = reply(550, "5.1.1", "No such mailbox here");
const TAKEN = reply(250, "2.0.0", "OK, report taken");
/** The report has overtaken our own record of the delivery: its sender brings it again. */
const NOT_YET = reply(451, "4.3.0", "The delivery reported on is not recorded yet, try again later");
/** An inbox has gone since RCPT: whoever brings the mail again learns which, and the others get it. */
const SOME_GONE = reply(451, "4.3.0", "A recipient is no longer here, try again");
const LOOP = reply(554, "5.4.6", "Too many hops: the mail goes in circles");
const BUSY = reply(451, "4.3.2", "Too much mail at a time, try again later");
const REFUSED = reply(550, "5.7.1", "Refused as the DMARC policy of the author's domain asks for");

/** The door for mail in: says at RCPT whom we take mail for, and at the end of DATA takes it. */
export function openDoor(deps: DoorDeps): MailHandler {
  const inTurn = oneByOne();
  return {
    async recipient(address: string): Promise<Reply | null> {
      const target = await targetOf(deps, address);
      if (target.kind === "no_domain") return NO_DOMAIN;
      return target.kind === "no_mailbox" ? NO_MAILBOX : null;
    },
    message: (envelope, raw) => receive(deps, inTurn, envelope, raw),
  };
}

/** Where a mail goes; `feedback` is where providers send their users' complaints. */
type Target = InboundTarget | { kind: "feedback" };

async function targetOf(deps: DoorDeps, address: string): Promise<Target> {
  if (addressKey(address) === `fbl@${deps.serviceDomain}`) return { kind: "feedback" };
  return routeAddress(deps, address);
}

async function receive(
  deps: DoorDeps,
  inTurn: OneByOne,
  envelope: Envelope,
  raw: Uint8Array,
): Promise<Reply> {
  if (countFields(raw, "received") > MAX_RECEIVED) return LOOP;
  const inboxes = new Map<string, InboundTargetInbox & { addresses: string[] }>();
  const report = raw.subarray(0, MAX_REPORT_OCTETS);
  let reports = 0;
  let gone = 0;
  for (const address of envelope.rcptTo) {
    // Asked again: an inbox may have gone between RCPT and the end of DATA.
    const target = await targetOf(deps, address);
    if (target.kind === "inbox") {
      const { inbox } = target;
      const known = inboxes.get(inbox.id) ?? { inbox, addresses: [] };
      known.addresses.push(address);
      inboxes.set(inbox.id, known);
    }
    if (target.kind === "no_domain" || target.kind === "no_mailbox") gone++;
    if (target.kind !== "bounce" && target.kind !== "feedback") continue;
    // Before any check of its sender: reports come from wherever a mail has got to, unsigned.
    const taken =
      target.kind === "bounce"
        ? await takeReport(deps, target.messageId, target.ord, report)
        : await takeFeedback(deps, report);
    if (!taken) return NOT_YET;
    reports++;
  }
  if (inboxes.size === 0) return reports > 0 ? TAKEN : NO_MAILBOX;
  if (gone > 0) return SOME_GONE;
  return letIn(deps, inTurn, [...inboxes.values()], envelope, raw);
}

/** Inspects a mail for inboxes, and takes it or refuses it. */
async function letIn(
  deps: DoorDeps,
  inTurn: OneByOne,
  targets: readonly InboundTargetInbox[],
  session: Envelope,
  raw: Uint8Array,
): Promise<Reply> {
  const inspection = await deps.inspect({ raw, session });
  if (inspection === null) return BUSY;
  const { verdict, header } = inspection.authentication;
  const trace = traceFields(session, header, deps.hostname, deps.clock.now());
  const { mailFrom, rcptTo, ip, helo, tls } = session;
  const envelope = { mailFrom, rcptTo, ip, helo, tls };
  const mail = { envelope, trace, raw, inspection, testMode: false };
  if (refusedByPolicy(verdict)) {
    await recordRefusal(deps, targets, mail);
    log("smtp").info("mail refused by policy", { ip, mailFrom, domain: verdict.dmarc.domain });
    return REFUSED;
  }
  const { messageId, ok } = inspection.mail;
  const take = (): Promise<string[]> => takeOnce(deps, targets, mail);
  const ids = messageId === null ? await take() : await inTurn(messageId, take);
  log("smtp").info("mail taken", { messages: ids, bytes: raw.length, read: ok });
  return reply(250, "2.0.0", `OK ${ids[0] ?? "taken"}`);
}

/** Takes the mail where it is not there yet. Gives its ids, the earlier ones included. */
async function takeOnce(
  deps: DoorDeps,
  targets: readonly InboundTargetInbox[],
  mail: InboundMail,
): Promise<string[]> {
  const earlier: string[] = [];
  const missing: InboundTargetInbox[] = [];
  for (const target of targets) {
    const found = await earlierArrival(deps, target.inbox, mail.inspection.mail.messageId, mail.raw);
    if (found === null) missing.push(target);
    else earlier.push(found.messageId);
  }
  const arrivals = missing.length === 0 ? [] : await takeMail(deps, missing, mail);
  return [...earlier, ...arrivals.map(({ messageId }) => messageId)];
}
