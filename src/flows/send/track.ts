import { type Clock, within } from "../../core/clock.ts";
import { isMachine, MAX_USER_AGENT_CHARS, type Visit } from "../../core/machine-agents.ts";
import { log } from "../../log.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db, Guard } from "../../store/engine/client.ts";
import {
  countEngagement,
  type EngagedRecipient,
  type EngagementCounter,
  engagedRecipient,
  firstOpenGuard,
  laterOpenGuard,
  MAX_RECORDED,
  roomGuard,
} from "../../store/engagement.ts";
import { hint } from "../hint.ts";
import { announce } from "../notify/announce.ts";
import type { NamedRecipient } from "../recipient-token.ts";
import type { TrackingLinks } from "./tracking-links.ts";

export interface TrackDeps extends TrackingLinks {
  db: Db;
  clock: Clock;
  queue: Queue;
}

/** An open, or a click on a URL. */
export interface Hit {
  recipient: NamedRecipient;
  /** Null: an open. */
  url: string | null;
  visit: Visit;
}

/** Time for which an answer waits until its hit is committed (milliseconds): the reader must not wait for our trouble. */
export const RECORD_WAIT_MS = 250;
/** Hits being recorded at a time; what comes while a database in trouble holds so many is answered and not recorded. */
export const MAX_PENDING_HITS = 1000;

/** Records a hit. Never fails, and never takes longer than `RECORD_WAIT_MS`. */
export type HitRecorder = (hit: Hit) => Promise<void>;

/** Makes the recorder of a process. */
export function createHitRecorder(deps: TrackDeps): HitRecorder {
  let pending = 0;
  return async (hit) => {
    if (pending === MAX_PENDING_HITS) return log("send").debug("too many hits wait, one is left out");
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
  // A link outlives its message: it goes on leading where it led.
  if (engaged === null) return;
  const machine = isMachine(visit, sinceDelivery(engaged, deps.clock.now()));
  const counter = counterOf(url === null, machine);
  if (engaged.counts[counter] >= MAX_RECORDED) return;
  const seen = { ip: plainIp(visit.ip), userAgent: plainAgent(visit.userAgent) };
  const tellings =
    url === null
      ? opens(recipient, engaged, counter, { ...seen, machine })
      : [{ data: { click: { url, ...seen, machine } }, guard: roomGuard(messageId, ord, counter) }];
  const type = url === null ? "open" : "click";
  const announced = await Promise.all(
    tellings.map(({ data, guard }) =>
      announce(deps, engaged.senderId, [{ messageId, type, email: engaged.email, data }], guard),
    ),
  );
  const statements = announced.flatMap((announcement) => announcement.statements);
  await deps.db.write([...statements, countEngagement(messageId, ord, counter)]);
  for (const { pushes } of announced) hint(deps.queue, "push", pushes);
}

/** An event as it may come to be, and when it does. */
interface Telling {
  data: Record<string, unknown>;
  guard: Guard;
}

/** The open as the first and as a later one: of two at once the database makes one the first. */
function opens(
  { messageId, ord }: NamedRecipient,
  { counts }: EngagedRecipient,
  counter: EngagementCounter,
  { ip, userAgent, machine }: { ip: string | null; userAgent: string | null; machine: boolean },
): Telling[] {
  const telling = (first: boolean, guard: Guard): Telling => ({
    data: { open: { ip, userAgent, first, machine } },
    guard,
  });
  const later = telling(false, laterOpenGuard(messageId, ord, counter));
  if (counts.opens + counts.machine_opens > 0) return [later];
  return [telling(true, firstOpenGuard(messageId, ord)), later];
}

function counterOf(open: boolean, machine: boolean): EngagementCounter {
  if (open) return machine ? "machine_opens" : "opens";
  return machine ? "machine_clicks" : "clicks";
}

/** Milliseconds since the recipient's mail was delivered; none while it is on its way; null where it went no further. */
function sinceDelivery({ status, lastEventAt }: EngagedRecipient, now: number): number | null {
  // The peer's scanner looks before the peer says 250.
  if (status === "sending") return 0;
  if ((status !== "delivered" && status !== "sent") || lastEventAt === null) return null;
  // Either way: a clock that was put back must not make machines of all readers until it has come round.
  return Math.abs(now - lastEventAt);
}

/** An IPv4 address that came to a dual-stack listener in its own form (RFC 4291 §2.5.5.2). */
function plainIp(ip: string | null): string | null {
  return ip === null ? null : ip.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** The field within its limit, without control characters: it goes into logs and terminals of others. */
function plainAgent(userAgent: string | null): string | null {
  if (userAgent === null) return null;
  const plain = userAgent.slice(0, MAX_USER_AGENT_CHARS).replace(/[\x00-\x1f\x7f-\x9f]/g, "");
  return plain.toWellFormed();
}
