import { cacheFor, within } from "../../core/time/clock.ts";
import { DAY_MS, SECOND_MS } from "../../core/time/units.ts";
import { transmitLane } from "../../queue/hint.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import type { Ways } from "../deliver/outcome.ts";
import type { Place } from "../deliver/ways.ts";
import { isRelayLane } from "../lanes/providers.ts";
import { type LaneRecord, type ReadLanesDeps, readLanes } from "../lanes/read-lanes.ts";
import type { Cause } from "./causes.ts";

/** Why a message waits, and until when at least, milliseconds. `nextAttemptAt` is left out if its turn decides. */
export interface Wait extends Cause {
  nextAttemptAt?: number;
}

/** Finds what the lanes of waiting recipients do. Recipients that do not wait for a lane are left out. */
export type FindWaits = (recipients: readonly Recipient[]) => Promise<ReadonlyMap<Recipient, Wait>>;

export interface WaitsDeps extends ReadLanesDeps {
  /** Finds the ways of messages, in order of preference. */
  waysOf: (place: Place) => Promise<Ways>;
}

/** Maximum number of recipient domains of a message whose ways are looked up. */
const MAX_PLACES = 10;
/** Time for those lookups, milliseconds. Without an answer the explanation says less. */
const LOOK_MS = 2 * SECOND_MS;
/** Time for which the state of the lanes is kept, milliseconds. Workers store it once a second. */
const FRESH_MS = SECOND_MS;

/**
 * Returns what finds the waits of recipients. Only a worker knows which lane a message waits in, so the ways of its domain
 * are looked up as the worker does.
 */
export function openWaits({ waysOf, ...deps }: WaitsDeps): FindWaits {
  const { clock } = deps;
  const lanes = cacheFor(
    clock,
    FRESH_MS,
    async () => new Map((await readLanes(deps)).map((lane) => [lane.name, lane])),
  );
  return async (recipients) => {
    const now = clock.now();
    const places = Map.groupBy(
      recipients.filter((recipient) => waits(recipient, now)),
      transmitLane,
    );
    const looks = [...places.values()].slice(0, MAX_PLACES).map(async (those) => {
      const [first] = those;
      const ways = first === undefined ? null : await within(clock, LOOK_MS, waysOf(first), null);
      const lane = ways === null ? null : laneOf(ways, await lanes());
      const wait = lane === null || first === undefined ? null : waitOf(lane, first.domain, now);
      return wait === null ? [] : those.map((recipient) => [recipient, wait] as const);
    });
    return new Map((await Promise.all(looks)).flat());
  };
}

function waits({ status, reason, dueAt }: Recipient, now: number): boolean {
  return status === "queued" && reason === null && dueAt !== null && dueAt <= now;
}

/** Returns the lane that messages with these ways take, as `dispatch` chooses it; null if it does nothing to speak of. */
function laneOf(ways: Ways, lanes: ReadonlyMap<string, LaneRecord>): LaneRecord | null {
  const of = (name = "") => lanes.get(name) ?? null;
  const usable = ways.filter(({ overflowOf }) => overflowOf === undefined || isFull(of(overflowOf.name)));
  const open = usable.find(({ lane }) => {
    const found = of(lane?.name);
    return found === null || (found.opensAt === null && !isFull(found));
  });
  return of((open ?? usable[0])?.lane?.name);
}

/** Returns whether the warm-up of a lane lets nothing more leave today. */
function isFull(lane: LaneRecord | null): boolean {
  const warmUp = lane?.warmUp ?? null;
  return warmUp !== null && warmUp.used >= warmUp.cap;
}

const WAIT = "Wait: the message leaves by itself.";

function waitOf(lane: LaneRecord, domain: string, now: number): Wait | null {
  const { name, title, state, opensAt, waiting, warmUp } = lane;
  const whose = title ?? (isRelayLane(name) ? "the relay" : `the mail server of ${domain}`);
  const who = `${whose.charAt(0).toUpperCase()}${whose.slice(1)}`;
  if (opensAt !== null && state === "blocked")
    return {
      why: `${who} refuses our address, so mail to it is held until ${timeOf(opensAt, now)}. Then one message tries.`,
      who: "us",
      next: "Wait, or ask the operator to have the address taken off the block list.",
      nextAttemptAt: opensAt,
    };
  if (opensAt !== null)
    return {
      why: `${who} asked us to wait until ${timeOf(opensAt, now)}.`,
      who: "provider",
      next: WAIT,
      nextAttemptAt: opensAt,
    };
  if (warmUp !== null && isFull(lane)) {
    const tomorrow = now - (now % DAY_MS) + DAY_MS;
    const why = `The sending address is new to ${whose}, and its ${warmUp.cap} messages of today have left. The next leave at ${timeOf(tomorrow, now)}.`;
    return { why, who: "us", next: WAIT, nextAttemptAt: tomorrow };
  }
  if (waiting === 0) return null;
  const slowed = state === "slowed" ? `${who} asked us to slow down. ` : "";
  const many = waiting === 1 ? "1 message" : `${waiting.toLocaleString("en")} messages`;
  return {
    why: `${slowed}It waits among ${many} to ${whose}${paceOf(lane)}.`,
    who: slowed === "" ? "us" : "provider",
    next: WAIT,
  };
}

function paceOf({ rate }: LaneRecord): string {
  if (rate === null) return "";
  return rate < 1
    ? `, which leave at ${Math.round(rate * 60)} a minute`
    : `, which leave at ${Math.round(rate)} a second`;
}

/** Returns a time as `14:10 UTC`, with its date unless that is today's. */
export function timeOf(at: number, now: number): string {
  const [day = "", time = ""] = new Date(at).toISOString().split("T");
  const short = `${time.slice(0, 5)} UTC`;
  return new Date(now).toISOString().startsWith(day) ? short : `${short} on ${day}`;
}
