import { log } from "../../log.ts";
import type { Envelope, MailHandler } from "../../smtp/envelope.ts";
import { type Reply, reply } from "../../smtp/reply.ts";
import type { InboxRef } from "../../store/sending.ts";
import { takeReport } from "../send/report.ts";
import { type RouteDeps, routeAddress } from "./route.ts";
import { type TakeDeps, takeMail } from "./take.ts";
import { traceFields } from "./trace.ts";

export interface DoorDeps extends RouteDeps, TakeDeps {
  /** Our name in Received and Authentication-Results: the MX name. */
  hostname: string;
}

/** RFC 5321 §6.3: hops after which a mail is taken to go in circles. */
const MAX_RECEIVED = 100;

const NO_DOMAIN = reply(550, "5.1.2", "No domain here receives mail for that name");
const NO_MAILBOX = reply(550, "5.1.1", "No such mailbox here");
const TAKEN = reply(250, "2.0.0", "OK, report taken");
/** The report has overtaken our own record of the delivery: its sender brings it again. */
const NOT_YET = reply(451, "4.3.0", "The delivery reported on is not recorded yet, try again later");
const LOOP = reply(554, "5.4.6", "Too many hops: the mail goes in circles");

/** The door for mail in: says at RCPT whom we take mail for, and at the end of DATA takes it. */
export function openDoor(deps: DoorDeps): MailHandler {
  return {
    async recipient(address: string): Promise<Reply | null> {
      const target = await routeAddress(deps, address);
      if (target.kind === "no_domain") return NO_DOMAIN;
      return target.kind === "no_mailbox" ? NO_MAILBOX : null;
    },
    message: (envelope, raw) => receive(deps, envelope, raw),
  };
}

async function receive(deps: DoorDeps, envelope: Envelope, raw: Uint8Array): Promise<Reply> {
  if (countReceivedFields(raw) > MAX_RECEIVED) return LOOP;
  const inboxes = new Map<string, { inbox: InboxRef; addresses: string[] }>();
  let reports = 0;
  for (const address of envelope.rcptTo) {
    // Asked again: an inbox may have gone between RCPT and the end of DATA.
    const target = await routeAddress(deps, address);
    if (target.kind === "inbox") {
      const { inbox } = target;
      const known = inboxes.get(inbox.id) ?? { inbox, addresses: [] };
      known.addresses.push(address);
      inboxes.set(inbox.id, known);
    }
    if (target.kind !== "bounce") continue;
    if (!(await takeReport(deps, target.messageId, target.ord, raw))) return NOT_YET;
    reports++;
  }
  if (inboxes.size === 0) return reports > 0 ? TAKEN : NO_MAILBOX;
  const { mailFrom, rcptTo, ip, helo, tls } = envelope;
  const trace = traceFields(envelope, deps.hostname, deps.clock.now());
  const whole = Buffer.concat([Buffer.from(trace, "utf8"), raw]);
  const arrivals = await takeMail(deps, [...inboxes.values()], { mailFrom, rcptTo, ip, helo, tls }, whole);
  const ids = arrivals.map((arrival) => arrival.messageId);
  log("smtp").info("mail taken", { messages: ids, bytes: raw.length });
  return reply(250, "2.0.0", `OK ${ids[0] ?? "taken"}`);
}

/** Received fields in the header block, counted without parsing it. */
function countReceivedFields(raw: Uint8Array): number {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const end = bytes.indexOf("\r\n\r\n");
  const head = bytes.subarray(0, end < 0 ? bytes.length : end).toString("latin1");
  return head.match(/(?:^|\r\n)received:/gi)?.length ?? 0;
}
