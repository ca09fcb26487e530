import { addressKey } from "../../core/addresses.ts";
import { within } from "../../core/time/clock.ts";
import { isMachine, MAX_USER_AGENT_CHARS, type Visit } from "../../core/machine-agents.ts";
import { log } from "../../log.ts";
import type { Guard } from "../../store/engine/client.ts";
import {
  countEngagement,
  type EngagedRecipient,
  type EngagementCounter,
  engagedRecipient,
  firstOpenGuard,
  laterOpenGuard,
  MAX_RECORDED,
  belowLimitGuard,
} from "../../store/events/engagement.ts";
import { noteEngagement } from "../../store/audience/engagement-times.ts";
import { announce, writeAnnounced } from "../webhooks/announce.ts";
import type { NamedRecipient } from "../mime/recipient-token.ts";
import type { TrackingLinks } from "../mime/tracking-links.ts";
import type { Outbox } from "../outbox.ts";

export interface TrackDeps extends TrackingLinks, Outbox {}

/** An open, or a click on a URL. */
export interface Hit {
  recipient: NamedRecipient;
  /** Null for an open. */
  url: string | null;
  visit: Visit;
}

/**
 * Time for which an answer waits for the commit of its hit, milliseconds. The reader must not wait for trouble of ours.
 */
export const RECORD_WAIT_MS = 250;
/** Hits recorded at once. If a database in trouble holds so many, further ones are answered and not recorded. */
export const MAX_PENDING_HITS = 1000;

/** Records a hit. Never fails, and never takes longer than `RECORD_WAIT_MS`. */
export type HitRecorder = (hit: Hit) => Promise<void>;

/** Creates the recorder of a process. */
export function createHitRecorder(deps: TrackDeps): HitRecorder {
  let pending = 0;
  return async (hit) => {
    if (pending === MAX_PENDING_HITS) return log("send").debug("too many hits wait, one is not recorded");
    pending++;
    const recorded = recordHit(deps, hit)
      .catch((error: unknown) => log("send").warn("a hit could not be recorded", { error: String(error) }))
      .finally(() => {
        pending--;
      });
    await within(deps.clock, RECORD_WAIT_MS, recorded, undefined);
  };
}

async function recordHit(deps: TrackDeps, { recipient, url, visit }: Hit): Promise<void> {
  const { messageId, ord } = recipient;
  const engaged = await engagedRecipient(deps.db, messageId, ord);
  // A link outlives its message: it still redirects, and nothing is recorded.
  if (engaged === null) return;
  const machine = isMachine(visit, sinceDelivery(engaged, deps.clock.now()));
  const counter = counterOf(url === null, machine);
  if (engaged.counts[counter] >= MAX_RECORDED) return;
  const seen = { ip: plainIp(visit.ip), userAgent: plainAgent(visit.userAgent) };
  const events =
    url === null
      ? opens(recipient, engaged, counter, { ...seen, machine })
      : [{ data: { click: { url, ...seen, machine } }, guard: belowLimitGuard(messageId, ord, counter) }];
  const type = url === null ? "open" : "click";
  const announced = await Promise.all(
    events.map(({ data, guard }) =>
      announce(deps, engaged.senderId, [{ messageId, type, email: engaged.email, data }], guard),
    ),
  );
  const all = {
    statements: announced.flatMap(({ statements }) => statements),
    pushes: announced.flatMap(({ pushes }) => pushes),
  };
  const { senderId, email } = engaged;
  const kept = noteEngagement(
    url === null ? "opened" : "clicked",
    senderId,
    addressKey(email),
    deps.clock.now(),
  );
  await writeAnnounced(deps, all, {
    after: [countEngagement(messageId, ord, counter), ...(machine ? [] : [kept])],
  });
}

/** An event, and the guard under which it happens. */
interface TrackedEvent {
  data: Record<string, unknown>;
  guard: Guard;
}

/**
 * Returns an open as the first and as a later one. If there are two at once, the database makes one of them the first.
 */
function opens(
  { messageId, ord }: NamedRecipient,
  { counts }: EngagedRecipient,
  counter: EngagementCounter,
  { ip, userAgent, machine }: { ip: string | null; userAgent: string | null; machine: boolean },
): TrackedEvent[] {
  const open = (first: boolean, guard: Guard): TrackedEvent => ({
    data: { open: { ip, userAgent, first, machine } },
    guard,
  });
  const later = open(false, laterOpenGuard(messageId, ord, counter));
  if (counts.opens + counts.machine_opens > 0) return [later];
  return [open(true, firstOpenGuard(messageId, ord)), later];
}

function counterOf(open: boolean, machine: boolean): EngagementCounter {
  if (open) return machine ? "machine_opens" : "opens";
  return machine ? "machine_clicks" : "clicks";
}

/** Milliseconds since the recipient's delivery: 0 while the message is in delivery, null if it was not delivered. */
function sinceDelivery({ status, lastEventAt }: EngagedRecipient, now: number): number | null {
  // The peer's scanner opens the message before the peer says 250.
  if (status === "sending") return 0;
  if ((status !== "delivered" && status !== "sent") || lastEventAt === null) return null;
  // Absolute, because if the clock was set back, all readers would count as machines for that time.
  return Math.abs(now - lastEventAt);
}

/** Returns an IPv4 address that a dual-stack listener saw as IPv6 in its own form (RFC 4291 §2.5.5.2). */
function plainIp(ip: string | null): string | null {
  return ip === null ? null : ip.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Returns the field cut to its limit, without control characters, because it is shown in logs and terminals. */
function plainAgent(userAgent: string | null): string | null {
  if (userAgent === null) return null;
  const plain = userAgent.slice(0, MAX_USER_AGENT_CHARS).replace(/[\x00-\x1f\x7f-\x9f]/g, "");
  return plain.toWellFormed();
}
