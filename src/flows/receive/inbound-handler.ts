import { setBounded } from "../../core/collections.ts";
import { type KeyedMutex, createKeyedMutex } from "../../core/concurrency/keyed-mutex.ts";
import { resumeTogether } from "../../core/concurrency/event-loop.ts";
import { log } from "../../log.ts";
import { withoutOwnResults } from "../../mail/auth/own-results.ts";
import { policyAnswer } from "../../mail/auth/policy-answer.ts";
import type { SpamCheckFail } from "../../core/messages/spam.ts";
import { countFields } from "../../mail/reading/raw-headers.ts";
import type { Envelope, MailHandler } from "../../smtp/session/envelope.ts";
import type { Reply } from "../../smtp/session/reply.ts";
import { spamCheckFailOf } from "../../store/projects/projects.ts";
import { overQuotaIn } from "../../store/projects/holdings.ts";
import type { TakeReportsDeps } from "../reports/take-reports.ts";
import { type EarlyReports, earlyReports } from "../deliver/early-reports.ts";
import type { ReportDeps, ReportTaken } from "../deliver/report.ts";
import { isForService, reportName, takeForService, withoutReports } from "./take-for-service.ts";
import { relatedMessageIds } from "./arrival-facts.ts";
import type { InboundTargetInbox } from "./inbound-message.ts";
import { DISK_LOW, MAILBOX_FULL, storageRefusal, type Receiving } from "./storage-limits.ts";
import {
  BUSY,
  DMARC_UNKNOWN,
  LOOP,
  NO_DOMAIN,
  NO_MAILBOX,
  RECIPIENT_GONE,
  REPORT_ACCEPTED,
  REPORT_EARLY,
  ROLE_FULL,
  SPAM_UNKNOWN,
  type InboundOutcome,
  outcomeOf,
} from "./replies.ts";
import { type RoleLimits, type RoleVolume, roleVolume } from "./role-volume.ts";
import { type InboundTarget, isUnknown, routeAddress, routeAfterSync, type RouteDeps } from "./route.ts";
import { createStoreAsNew, type StoreAsNew } from "./store-as-new.ts";
import type { CheckSpam } from "./spam-check.ts";
import { needsOf, rulesOf } from "./rules-of-arrival.ts";
import { checkAndStore } from "./check-and-store.ts";
import { traceFields } from "./trace-fields.ts";

export interface InboundHandlerDeps
  extends RouteDeps,
    Receiving,
    TakeReportsDeps,
    Pick<ReportDeps, "suspension"> {
  /** Our MX name, for Received and Authentication-Results. */
  hostname: string;
  /** Asks the spam filter. If left out, there is none. */
  checkSpam?: CheckSpam | undefined;
  /** The fate of mail if the filter fails, in projects that do not say so. If left out, messages are taken. */
  spamCheckFail?: SpamCheckFail;
  /** If left out, the usual limits. */
  roleLimits?: RoleLimits;
  /** Called with the outcome of each message, for counters. */
  received?: (outcome: InboundOutcome) => void;
}

/** Number of Received fields at which a message counts as looping (RFC 5321 §6.3). */
const MAX_RECEIVED = 100;
/** Maximum number of addresses with a cached inbox from RCPT to the end of DATA. Further ones are read again. */
const MAX_CACHED_TARGETS = 10_000;

/** The replies to reports; null if the report was accepted. */
const REPORT_REPLIES: Readonly<Record<ReportTaken, Reply | null>> = {
  taken: null,
  early: REPORT_EARLY,
  busy: BUSY,
};

/** Creates the handler of incoming mail, which answers RCPT and stores the message at the end of DATA. */
export function createInboundHandler(deps: InboundHandlerDeps): MailHandler {
  const state: HandlerState = {
    deps,
    // Related messages are stored one after another. A sender may repeat a message while we still work on it, or
    // deliver a message and its replies at once, and they must end up in one thread.
    mutex: createKeyedMutex(),
    storeAsNew: createStoreAsNew(deps.clock),
    targetsAtRcpt: new Map(),
    volume: roleVolume(deps.clock, deps.roleLimits),
    earlyReports: earlyReports(deps.clock),
  };
  // Another process may have just created the inbox, so a replica syncs first.
  const synced = resumeTogether(() => deps.db.refreshReads());
  return {
    async recipient(address, envelope): Promise<Reply | null> {
      await synced();
      const target = await routeAfterSync(deps, address);
      remember(state.targetsAtRcpt, address, target);
      if (target.kind === "no_domain") return NO_DOMAIN;
      if (target.kind === "role" && !state.volume.hasRoom(target.mailbox.address)) return ROLE_FULL;
      return target.kind === "no_mailbox"
        ? NO_MAILBOX
        : storageRefusal(deps, target, envelope.announcedOctets ?? 0);
    },
    async message(envelope, raw) {
      try {
        const answer = await receive(state, envelope, raw);
        deps.received?.(outcomeOf(answer));
        return answer;
      } catch (error) {
        deps.received?.("trouble");
        throw error;
      }
    },
    stopping: () => state.earlyReports.end(),
  };
}

interface HandlerState {
  deps: InboundHandlerDeps;
  mutex: KeyedMutex;
  storeAsNew: StoreAsNew;
  /** The inboxes found at RCPT. Before a message is stored, they are checked again. */
  targetsAtRcpt: Map<string, InboundTarget>;
  volume: RoleVolume;
  earlyReports: EarlyReports;
}

function remember(cache: HandlerState["targetsAtRcpt"], address: string, target: InboundTarget): void {
  if (target.kind === "inbox") setBounded(cache, address, target, MAX_CACHED_TARGETS);
  else cache.delete(address);
}

async function receive(state: HandlerState, envelope: Envelope, raw: Uint8Array): Promise<Reply> {
  if (countFields(raw, "received") > MAX_RECEIVED) return LOOP;
  const { deps } = state;
  const inboxes = new Map<string, InboundTargetInbox & { addresses: string[] }>();
  // One report per recipient, because reading one takes about ten milliseconds and an address has many spellings.
  const reports = new Set<string>();
  let gone = 0;
  for (const address of envelope.rcptTo) {
    const target = state.targetsAtRcpt.get(address) ?? (await routeAddress(deps, address));
    if (target.kind === "inbox" || target.kind === "role") {
      const inbox = target.kind === "inbox" ? target.inbox : target.mailbox;
      const key = inbox.id ?? inbox.address;
      const known = inboxes.get(key) ?? { inbox, addresses: [] };
      known.addresses.push(address);
      inboxes.set(key, known);
    }
    if (isUnknown(target)) gone++;
    if (!isForService(target)) continue;
    const about = reportName(target);
    if (reports.has(about)) continue;
    // The sender is not checked, because reports come unsigned from any server that handled the message.
    const refusal = REPORT_REPLIES[await takeForService(state, target, envelope, raw)];
    if (refusal !== null) return refusal;
    reports.add(about);
  }
  const targets = [...inboxes.values()];
  if (targets.length === 0) return reports.size > 0 ? REPORT_ACCEPTED : NO_MAILBOX;
  if (gone > 0) return RECIPIENT_GONE;
  if (deps.space?.low() === true) return DISK_LOW;
  const roomy = targets.every(
    ({ inbox }) => inbox.id !== null || state.volume.add(inbox.address, raw.length),
  );
  return roomy ? inspectAndStore(state, targets, envelope, raw) : ROLE_FULL;
}

/** Inspects a message for inboxes, and stores or refuses it. */
async function inspectAndStore(
  { deps, mutex, storeAsNew }: HandlerState,
  targets: readonly InboundTargetInbox[],
  session: Envelope,
  received: Uint8Array,
): Promise<Reply> {
  const { mailFrom, rcptTo, ip, helo, tls } = session;
  const raw = withoutOwnResults(received, deps.hostname);
  const rules = await rulesOf(deps.db, targets);
  const needs = await needsOf(deps.db, targets, rules);
  const [inspection, spam] = await Promise.all([
    deps.inspect({ kind: "mail", raw, session: { ip, helo, mailFrom }, rules: needs }),
    targets.some(({ inbox }) => inbox.id !== null) ? (deps.checkSpam?.(session, raw) ?? null) : null,
  ]);
  if (inspection === null) return BUSY;
  const { dmarc } = inspection.authentication.verdict;
  const answer = targets.every(isAlwaysTaken) ? "take" : policyAnswer(dmarc);
  if (answer === "defer") {
    log("smtp").info("a message was deferred, because the DMARC policy of its author is unknown", {
      ip,
      domain: dmarc.domain,
    });
    return DMARC_UNKNOWN;
  }
  const left = answer === "take" ? await withoutReports(deps, targets, raw, inspection) : targets;
  if (left === null) return BUSY;
  if (left.length === 0) return REPORT_ACCEPTED;
  if (spam === "failed" && (await isDeferred(deps, left))) return SPAM_UNKNOWN;
  const trace = traceFields(session, inspection.authentication.header, deps.hostname, deps.clock.now());
  const mail = {
    envelope: { mailFrom, rcptTo, ip, helo, tls },
    trace,
    raw,
    inspection,
    spam: spam === "failed" ? null : spam,
    rules,
    testMode: false,
  };
  const taken = mutex(relatedMessageIds(inspection.mail), () =>
    storeAsNew((asNew) => checkAndStore(deps, left, mail, { answer, asNew })),
  );
  return taken
    .then((reply) => reply ?? BUSY)
    .catch((error: unknown) => {
      if (overQuotaIn(error) === null) throw error;
      return MAILBOX_FULL;
    });
}

/** Returns true if a message without a verdict is not taken yet, because one of its projects says so. */
async function isDeferred(
  { db, spamCheckFail = "accept" }: InboundHandlerDeps,
  targets: readonly InboundTargetInbox[],
): Promise<boolean> {
  const projects = targets.flatMap(({ inbox }) => (inbox.id === null ? [] : [inbox.senderId]));
  const asked = await Promise.all(projects.map((id) => spamCheckFailOf(db, id)));
  return asked.some((fail) => (fail ?? spamCheckFail) === "defer");
}

/** Returns true if a mailbox accepts every message, as a postmaster's must (RFC 5321 §4.5.1). */
function isAlwaysTaken({ inbox }: InboundTargetInbox): boolean {
  return inbox.id === null && inbox.alwaysTaken;
}
