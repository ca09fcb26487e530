import { setNewest } from "../../core/newest.ts";
import { type OneByOne, oneByOne } from "../../core/one-by-one.ts";
import { gathering } from "../../core/turn.ts";
import { log } from "../../log.ts";
import { countFields } from "../../mail/reading/raw-headers.ts";
import type { Envelope, MailHandler } from "../../smtp/envelope.ts";
import { type Reply, reply } from "../../smtp/reply.ts";
import type { ArrivalFacts } from "../../store/arrivals.ts";
import { isInboxGone } from "../../store/inboxes.ts";
import type { Inspect } from "../readings.ts";
import { type EarlyReports, earlyReports } from "../send/early-reports.ts";
import { type ReportTaken, takeFeedback, takeReport } from "../send/report.ts";
import { sureOf } from "../sure-of.ts";
import { earlierArrival } from "./duplicate.ts";
import { factsOf, relatedOf } from "./facts.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";
import { lookingAnew } from "../look-anew.ts";
import { recordRefusal } from "./refuse.ts";
import { refusedByPolicy } from "./refused-by-policy.ts";
import { roleFacts } from "./role-mailbox.ts";
import { type RoleLimits, type RoleVolume, roleVolume } from "./role-volume.ts";
import { type InboundTarget, type RouteDeps, routeAddress } from "./route.ts";
import { type ArrivalPlace, type TakeDeps, takeMail } from "./take.ts";
import { traceFields } from "./trace.ts";

export interface DoorDeps extends RouteDeps, TakeDeps {
  /** Our name in Received and Authentication-Results: the MX name. */
  hostname: string;
  inspect: Inspect;
  /** Left out: the usual ones. */
  roleLimits?: RoleLimits;
  /** Is told what was made of each mail, for counters. */
  received?: (outcome: DoorOutcome) => void;
}

/** RFC 5321 §6.3: hops after which a mail is taken to go in circles. */
const MAX_RECEIVED = 100;
/** Addresses whose inbox is remembered from RCPT to the end of DATA; of one forgotten it is asked again. */
const MAX_REMEMBERED = 10_000;
/**
 * Octets of a report that are read. What it has to tell stands at its beginning, and below that the mail that came back,
 * which may be as large as any.
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
/** Not for good: what somebody wants to tell us is worth another try. */
const ROLE_FULL = reply(452, "4.2.2", "This mailbox has had its fill for now, try again later");
const REFUSED = reply(550, "5.7.1", "Refused as the DMARC policy of the author's domain asks for");

/** What can be made of a mail, as counters name it. */
export type DoorOutcome =
  | ("taken" | "report" | "dmarc" | "no_mailbox" | "gone")
  | ("loop" | "busy" | "early" | "trouble");

const OUTCOMES: ReadonlyMap<Reply, DoorOutcome> = new Map<Reply, DoorOutcome>([
  [TAKEN, "report"],
  [REFUSED, "dmarc"],
  [NO_MAILBOX, "no_mailbox"],
  [SOME_GONE, "gone"],
  [LOOP, "loop"],
  [BUSY, "busy"],
  [ROLE_FULL, "busy"],
  [NOT_YET, "early"],
]);

/** What the listener hears of a report: null where it is taken. */
const REPORT_REPLIES: Readonly<Record<ReportTaken, Reply | null>> = {
  taken: null,
  early: NOT_YET,
  busy: BUSY,
};

/** The door for mail in: says at RCPT whom we take mail for, and at the end of DATA takes it. */
export function openDoor(deps: DoorDeps): MailHandler {
  const door: Door = {
    deps,
    // A sender that has waited too long for our answer may bring the mail again while we still have it in hand, and one
    // that was cut off for a while brings a mail and its answers at once: they are to find each other's thread.
    inTurn: oneByOne(),
    led: new Map(),
    volume: roleVolume(deps.clock, deps.roleLimits),
    early: earlyReports(deps.clock),
  };
  // An inbox that another process has just answered for must not be unknown here.
  const asked = gathering(() => deps.db.heard());
  return {
    async recipient(address: string): Promise<Reply | null> {
      await asked();
      const target = await knownTarget(deps, address);
      remember(door.led, address, target);
      if (target.kind === "no_domain") return NO_DOMAIN;
      if (target.kind === "role" && !door.volume.hasRoom(target.mailbox.address)) return ROLE_FULL;
      return target.kind === "no_mailbox" ? NO_MAILBOX : null;
    },
    async message(envelope, raw) {
      try {
        const answer = await receive(door, envelope, raw);
        deps.received?.(OUTCOMES.get(answer) ?? "taken");
        return answer;
      } catch (error) {
        deps.received?.("trouble");
        throw error;
      }
    },
    stopping: () => door.early.end(),
  };
}

/** Where an address leads: that it leads nowhere is told for good. */
function knownTarget(deps: DoorDeps, address: string): Promise<InboundTarget> {
  return sureOf(deps.db, () => routeAddress(deps, address), isNowhere);
}

function isNowhere({ kind }: InboundTarget): boolean {
  return kind === "no_domain" || kind === "no_mailbox";
}

interface Door {
  deps: DoorDeps;
  inTurn: OneByOne;
  /** Inboxes that addresses led to at RCPT. Whether they are still there is asked once more before mail is taken. */
  led: Map<string, InboundTarget>;
  volume: RoleVolume;
  early: EarlyReports;
}

function remember(led: Door["led"], address: string, target: InboundTarget): void {
  if (target.kind === "inbox") setNewest(led, address, target, MAX_REMEMBERED);
  else led.delete(address);
}

async function receive(door: Door, envelope: Envelope, raw: Uint8Array): Promise<Reply> {
  if (countFields(raw, "received") > MAX_RECEIVED) return LOOP;
  const { deps } = door;
  const inboxes = new Map<string, InboundTargetInbox & { addresses: string[] }>();
  // By whom they are about. An address may be written in any number of ways, and reading a report takes some ten milliseconds.
  const reports = new Set<string>();
  let gone = 0;
  for (const address of envelope.rcptTo) {
    const target = door.led.get(address) ?? (await routeAddress(deps, address));
    if (target.kind === "inbox" || target.kind === "role") {
      const inbox = target.kind === "inbox" ? target.inbox : target.mailbox;
      const key = inbox.id ?? inbox.address;
      const known = inboxes.get(key) ?? { inbox, addresses: [] };
      known.addresses.push(address);
      inboxes.set(key, known);
    }
    if (isNowhere(target)) gone++;
    if (target.kind !== "bounce" && target.kind !== "feedback") continue;
    const about = target.kind === "bounce" ? `${target.messageId}.${target.ord}` : target.kind;
    if (reports.has(about)) continue;
    // Before any check of its sender: reports come from wherever a mail has got to, unsigned.
    const refusal = REPORT_REPLIES[await reportTo(door, target, raw)];
    if (refusal !== null) return refusal;
    reports.add(about);
  }
  const targets = [...inboxes.values()];
  if (targets.length === 0) return reports.size > 0 ? TAKEN : NO_MAILBOX;
  if (gone > 0) return SOME_GONE;
  const roomy = targets.every(
    ({ inbox }) => inbox.id !== null || door.volume.take(inbox.address, raw.length),
  );
  return roomy ? letIn(door, targets, envelope, raw) : ROLE_FULL;
}

function reportTo(
  { deps: given, early }: Door,
  target: Extract<InboundTarget, { kind: "bounce" | "feedback" }>,
  raw: Uint8Array,
): Promise<ReportTaken> {
  const report = raw.subarray(0, MAX_REPORT_OCTETS);
  // A large mail would keep its memory from others while it waits.
  const deps = { ...given, earlyReports: raw.length > MAX_REPORT_OCTETS ? undefined : early };
  return target.kind === "bounce"
    ? takeReport(deps, target.messageId, target.ord, report)
    : takeFeedback(deps, report);
}

/** Inspects a mail for inboxes, and takes it or refuses it. */
async function letIn(
  { deps, inTurn }: Door,
  targets: readonly InboundTargetInbox[],
  session: Envelope,
  raw: Uint8Array,
): Promise<Reply> {
  const { mailFrom, rcptTo, ip, helo, tls } = session;
  const inspection = await deps.inspect({ kind: "mail", raw, session: { ip, helo, mailFrom } });
  if (inspection === null) return BUSY;
  const trace = traceFields(session, inspection.authentication.header, deps.hostname, deps.clock.now());
  const mail = { envelope: { mailFrom, rcptTo, ip, helo, tls }, trace, raw, inspection, testMode: false };
  return inTurn(
    relatedOf(inspection.mail),
    async () => (await lookingAnew(() => lookAndTake(deps, targets, mail))) ?? BUSY,
  );
}

/** Takes an inspected mail, where all its inboxes are still there and its author's domain does not want it refused. */
async function lookAndTake(
  deps: DoorDeps,
  targets: readonly InboundTargetInbox[],
  mail: InboundMail,
): Promise<Reply> {
  const asked = targets.map(async (target) => ({
    ...target,
    facts: await placeFacts(deps, target.inbox, mail),
  }));
  const places = (await Promise.all(asked)).filter(isOpen);
  if (places.length === 0) return (await leadNowhere(deps, targets)) ? NO_MAILBOX : SOME_GONE;
  if (places.length < targets.length) return SOME_GONE;
  const { verdict } = mail.inspection.authentication;
  const { ip } = mail.envelope;
  // For all together: one answer is given for them all.
  if (refusedByPolicy(verdict) && !places.every(({ inbox }) => inbox.id === null && inbox.alwaysTaken)) {
    const messages = await recordRefusal(deps, places, mail);
    log("smtp").info("mail refused by policy", { messages, ip, domain: verdict.dmarc.domain });
    return REFUSED;
  }
  const ids = await takeOnce(deps, places, mail).catch((error: unknown) => {
    if (isInboxGone(error)) return null;
    throw error;
  });
  if (ids === null) return SOME_GONE;
  const { ok } = mail.inspection.mail;
  log("smtp").info("mail taken", { messages: ids, bytes: mail.raw.length, read: ok });
  return reply(250, "2.0.0", `OK ${ids[0] ?? "taken"}`);
}

/** Whether no address leads anywhere now: an inbox that is gone may have been made anew since RCPT. */
async function leadNowhere(deps: DoorDeps, targets: readonly InboundTargetInbox[]): Promise<boolean> {
  const addresses = targets.flatMap((target) => target.addresses);
  const found = await Promise.all(addresses.map((address) => knownTarget(deps, address)));
  return found.every(isNowhere);
}

function placeFacts(deps: DoorDeps, inbox: InboundTargetInbox["inbox"], mail: InboundMail) {
  return inbox.id === null ? roleFacts(deps.db, inbox) : factsOf(deps, inbox, mail.inspection.mail);
}

function isOpen(place: InboundTargetInbox & { facts: ArrivalFacts | null }): place is ArrivalPlace {
  return place.facts?.receiving === true;
}

/** Takes the mail where it is not there yet. Gives its ids, the earlier ones included. */
async function takeOnce(
  deps: DoorDeps,
  places: readonly ArrivalPlace[],
  mail: InboundMail,
): Promise<string[]> {
  const earlier: string[] = [];
  const missing: ArrivalPlace[] = [];
  const { raw } = mail.inspection.contents;
  for (const place of places) {
    const found = await earlierArrival(deps.db, place.inbox, place.facts, raw.key);
    if (found === null) missing.push(place);
    else earlier.push(found.messageId);
  }
  const arrivals = missing.length === 0 ? [] : await takeMail(deps, missing, mail);
  return [...earlier, ...arrivals.map(({ messageId }) => messageId)];
}
