import { notFound } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Store } from "../../store/engine/client.ts";
import {
  type LaneFigures,
  laneFigures,
  type LaneRow,
  listLanes,
  saveLane,
} from "../../store/installation/lanes.ts";
import { listWarmUps, type WarmUpRow } from "../../store/installation/warm-ups.ts";
import { relayRates } from "../../store/projects/routes.ts";
import { type LaneState, steady } from "./governor.ts";
import { bounded, type LaneWord, mostOf, opened, wordOf } from "./lane.ts";
import { type LanesDeps, limitsOfLane, planOfSetting } from "./lanes.ts";
import { progressOf, type WarmUpProgress } from "./warm-up.ts";
import { providerOfLane, relayLane } from "./providers.ts";

/** Name of what the operator changes, in place of an instance's id. */
const BY_OPERATOR = "operator";

export interface ReadLanesDeps extends Pick<LanesDeps, "usual" | "overrides" | "warmUps">, Store {}

/** A lane as all processes have it. Times are milliseconds. */
export interface LaneRecord {
  name: string;
  /** Name of the provider, as its users know it. Null: no known provider. */
  title: string | null;
  /** The page on which an operator asks to be taken off the provider's block list. */
  delisting: string | null;
  state: LaneWord;
  connections: number;
  /** Messages a second, now and at most. Null: no limit. */
  rate: number | null;
  limit: number | null;
  /** Null if it is open. */
  opensAt: number | null;
  reason: string | null;
  reply: string | null;
  /** Recipients that wait in the memory of workers. Further ones may wait in the database. */
  waiting: number;
  day: Pick<LaneFigures, "accepted" | "deferred" | "refused">;
  /** Null if its address is not new to the provider. */
  warmUp: WarmUpProgress | null;
}

/** The rows of a lane. */
interface Stored {
  row?: LaneRow | undefined;
  figures?: LaneFigures | undefined;
  warmUp?: WarmUpRow | undefined;
  /** Rate of its relay, messages a second. Null: no limit. Undefined: it is no relay's. */
  relayRate?: number | null | undefined;
}

/** Returns the lanes that are not steady, have had mail today, or warm up, by name. */
export async function readLanes(deps: ReadLanesDeps): Promise<LaneRecord[]> {
  const { db, clock } = deps;
  const [rows, figures, warmUps, relays] = await Promise.all([
    listLanes(db),
    laneFigures(db, Math.floor(clock.now() / DAY_MS)),
    listWarmUps(db),
    relayRates(db),
  ]);
  const states = new Map(rows.map((row) => [row.name, row]));
  const days = new Map(figures.map((day) => [day.lane, day]));
  const warming = new Map(warmUps.map((row) => [row.lane, row]));
  const rates = new Map(relays.map(({ id, ratePerSecond }) => [relayLane(id), ratePerSecond]));
  const stored = (name: string): Stored => ({
    row: states.get(name),
    figures: days.get(name),
    warmUp: warming.get(name),
    relayRate: rates.get(name),
  });
  return [...new Set([...states.keys(), ...days.keys(), ...warming.keys()])]
    .sort()
    .map((name) => recordOf(deps, name, stored(name)))
    .filter(({ name, state, warmUp }) => state !== "steady" || days.has(name) || warmUp !== null);
}

/**
 * Opens a lane at once, at the rate that it had. Workers see it within a second or two.
 * @throws AppError 404 if it was never slowed
 */
export async function openLane(deps: ReadLanesDeps, name: string): Promise<LaneRecord> {
  const [now, rows] = [deps.clock.now(), await listLanes(deps.db)];
  const row = rows.find((one) => one.name === name);
  if (row === undefined) throw notFound("lane");
  const state = JSON.stringify(opened(stateOf(deps, row)));
  const next = { ...row, state, version: row.version + 1, changedBy: BY_OPERATOR, changedAt: now };
  await deps.db.write([saveLane(next)]);
  const lanes = await readLanes(deps);
  return lanes.find((one) => one.name === name) ?? recordOf(deps, name, { row: next });
}

function stateOf(deps: ReadLanesDeps, row: LaneRow, most = mostOf(limitsOfLane(row.name, deps))): LaneState {
  return bounded({ ...steady(most), ...JSON.parse(row.state) }, most, deps.clock.now());
}

function recordOf(
  deps: ReadLanesDeps,
  name: string,
  { row, figures, warmUp, relayRate }: Stored,
): LaneRecord {
  const now = deps.clock.now();
  const usual = limitsOfLane(name, deps);
  const limits = relayRate === undefined ? usual : { ...usual, rate: relayRate ?? 0 };
  const most = mostOf(limits);
  const state = row === undefined ? steady(most) : stateOf(deps, row, most);
  const day = Math.floor(now / DAY_MS);
  // A worker takes the row of a route's warm-up to each day, until the route needs none.
  const first = planOfSetting(name, deps)?.from ?? (warmUp?.day === day ? day : null);
  const word = wordOf(state, most, now);
  const provider = providerOfLane(name);
  const isUnlimited = limits.rate === 0 && state.rate >= most.rate;
  const { accepted = 0, deferred = 0, refused = 0, waiting = 0 } = figures ?? {};
  return {
    name,
    title: provider?.title ?? null,
    delisting: provider?.delisting ?? null,
    state: word,
    connections: state.connections,
    rate: isUnlimited ? null : Math.round((state.rate / 60) * 1000) / 1000,
    limit: limits.rate === 0 ? null : limits.rate,
    opensAt: state.opensAt !== null && state.opensAt > now ? state.opensAt : null,
    reason: word === "steady" ? null : (state.cause?.category ?? null),
    reply: word === "steady" ? null : (state.cause?.reply ?? null),
    waiting,
    day: { accepted, deferred, refused },
    warmUp: first === null ? null : progressOf(warmUp, { day, first }),
  };
}
