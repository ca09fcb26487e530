import { setBounded } from "../../core/collections.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { noteWarmUpBlock } from "../../store/installation/warm-ups.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { PeerResult, SharedLimits } from "../../smtp/client/delivery.ts";
import type { Statement } from "../../store/engine/client.ts";
import { type LaneRow, saveLane } from "../../store/installation/lanes.ts";
import {
  type Fate,
  govern,
  isBlocked,
  isSteady,
  type LaneLimits,
  type LaneState,
  LONGEST_NAMED_MS,
  rests,
  type SignKind,
  steady,
} from "./governor.ts";
import { isRelayLane, type Provider, type ProviderLimits } from "./providers.ts";
import { attemptsOf, type Counts, DayCounts } from "./day-counts.ts";
import { capOf, type WarmUpPlan } from "./warm-up.ts";
import { type LaneSign, signOf } from "./sign.ts";
import { Taken } from "./taken.ts";

/** Messages a second from which a lane without a limit comes down. */
const UNLIMITED_RATE = 100;
/** Characters of a reply that a lane keeps. */
const KEPT_REPLY_CHARS = 500;

/** Maximum number of routes whose warm-ups a lane follows. */
const MAX_PLANS = 100;

/** Wait for the database, which knows what a new address has sent, milliseconds. */
const UNREAD_MS = 1000;

/** Number of ranks of lanes. */
export const RANKS = 3;

/** The condition of a lane, in a word. */
export type LaneWord = "steady" | "slowed" | "resting" | "blocked";

export interface LaneDeps {
  clock: Clock;
  /** Names this process in what it writes. */
  instanceId: string;
}

/** How far a lane's address has come with its provider. */
export interface WarmUp {
  /** Days since 1970. */
  day: number;
  /** Counts from 0. */
  step: number;
  /** Attempts of the day that the database counts. */
  used: number;
}

/** The one way to a provider, or to a set of MX hosts: its limits, and how far it has come down from them. */
export class Lane {
  readonly name: string;
  readonly provider: Provider | null;
  readonly limits: ProviderLimits;
  readonly shared: SharedLimits;
  readonly #deps: LaneDeps;
  readonly #taken = new Taken();
  #state: LaneState;
  #version = 0;
  #changedBy = "";
  readonly #counts = new DayCounts();
  /** The warm-ups that a setting ("") and routes ask for. None if its address or relay is warm. */
  readonly #plans = new Map<string, WarmUpPlan>();
  /** Null until the database was read. */
  #warmUp: WarmUp | null = null;
  #inFlight = 0;

  constructor(
    deps: LaneDeps,
    name: string,
    provider: Provider | null,
    limits: ProviderLimits,
    plan: WarmUpPlan | null = null,
  ) {
    this.#deps = deps;
    this.warm("", plan);
    this.name = name;
    this.provider = provider;
    this.limits = limits;
    this.#state = steady(this.#most);
    this.shared = {
      key: name,
      connections: () => this.#state.connections,
      messagesPerConnection: limits.messages,
      mayAskNextHost: (result) => result.kind !== "reply" || signOf(result) === null,
      onConnectionFailed: (result) => this.#noteFailedConnection(result),
    };
  }

  get state(): LaneState {
    return this.#state;
  }

  /** Maximum number of messages a minute now. Null: no limit. */
  get ratePerMinute(): number | null {
    if (this.limits.rate === 0 && this.#state.rate >= this.#most.rate) return null;
    return this.#state.rate;
  }

  /** Milliseconds until it takes messages; 0 if it takes them now. */
  get opensInMs(): number {
    return Math.max(0, (this.#state.opensAt ?? 0) - this.#deps.clock.now(), this.#warmsInMs);
  }

  /** True if its address is new to the provider. */
  get isWarming(): boolean {
    return this.#plans.size > 0;
  }

  /** Follows the warm-up of a route from now on, or no longer. */
  warm(routeId: string, plan: WarmUpPlan | null): void {
    if (plan === null) this.#plans.delete(routeId);
    else setBounded(this.#plans, routeId, plan, MAX_PLANS);
  }

  /** The most careful of its warm-ups. */
  get plan(): WarmUpPlan | null {
    const [first = null, ...others] = this.#plans.values();
    return others.reduce((least, plan) => (plan.target < (least?.target ?? 0) ? plan : least), first);
  }

  /** Why the warm-up of its address lets nothing more leave now. Null if it does. */
  get warmUpReason(): string | null {
    if (this.#warmsInMs === 0) return null;
    const cap = capOf(this.#warmUp?.step ?? 0, this.plan?.target);
    return `the address warms up, and its ${cap} messages of the day have left`;
  }

  /** Milliseconds until the warm-up of its address lets a message leave. */
  get #warmsInMs(): number {
    const { plan } = this;
    if (plan === null) return 0;
    const now = this.#deps.clock.now();
    const today = this.#today;
    if (today < plan.from) return plan.from * DAY_MS - now;
    if (this.#warmUp === null) return UNREAD_MS;
    const { day, step, used } = this.#warmUp;
    const stored = day === today ? used : 0;
    const left = (capOf(step, plan.target) ?? Infinity) - stored - this.#counts.attemptsOn(today);
    if (left > this.#inFlight) return 0;
    // Just after midnight the database may know the next cap, which is higher.
    return day === today ? (today + 1) * DAY_MS - now : UNREAD_MS;
  }

  /** Takes over how far its address has come. */
  warmTo(warmUp: WarmUp): void {
    this.#warmUp = warmUp;
  }

  /** Counts a message from its start to its answer. Returns what ends it, which may be called again. */
  begin(): () => void {
    let inFlight = 1;
    this.#inFlight += inFlight;
    return () => {
      this.#inFlight -= inFlight;
      inFlight = 0;
    };
  }

  /** How worth keeping it is: 2 if it is a provider's or a relay's, 1 if it is not at its limits, else 0. */
  get rank(): number {
    if (this.provider !== null || isRelayLane(this.name)) return 2;
    return isSteady(this.#state, this.#most, this.#deps.clock.now()) ? 0 : 1;
  }

  get word(): LaneWord {
    return wordOf(this.#state, this.#most, this.#deps.clock.now());
  }

  get #today(): number {
    return Math.floor(this.#deps.clock.now() / DAY_MS);
  }

  /** Counts the answer to a message. */
  count(what: "accepted" | "deferred" | "refused"): void {
    this.#counts.add(this.#today, what);
  }

  /** The attempts that the database does not count yet, by day. */
  get counts(): readonly Counts[] {
    return this.#counts.list();
  }

  /** Notes that the database counts some attempts. */
  noteStored(stored: readonly Counts[]): void {
    this.#counts.subtract(stored);
    for (const counts of stored)
      if (this.#warmUp?.day === counts.day) this.#warmUp.used += attemptsOf(counts);
  }

  /** Notes that the provider took a message. Returns the statements that store the lane if that changes it. */
  noteAccepted(startedAt: number): Statement[] {
    const now = this.#deps.clock.now();
    this.#taken.add(now);
    this.count("accepted");
    if (isSteady(this.#state, this.#most, now)) return [];
    return this.#govern("accepted", startedAt, null).statements;
  }

  /** Notes a sign. Returns the fate of the message that got it, and the statements that store the lane. */
  note(sign: LaneSign, reply: string, startedAt: number): { fate: Fate; statements: Statement[] } {
    const noted = this.#govern(sign.kind, startedAt, { ...sign, reply: reply.slice(0, KEPT_REPLY_CHARS) });
    if (!this.isWarming || sign.kind !== "blocked") return noted;
    return { ...noted, statements: [...noted.statements, noteWarmUpBlock(this.name)] };
  }

  /** Takes over what another process has stored, if it is newer. Returns true if that changed the lane. */
  adopt({ state, version, changedBy }: LaneRow): boolean {
    const isNewer = version > this.#version || (version === this.#version && changedBy !== this.#changedBy);
    if (!isNewer) return false;
    this.#state = bounded({ ...this.#state, ...JSON.parse(state) }, this.#most, this.#deps.clock.now());
    this.#version = version;
    this.#changedBy = changedBy;
    return true;
  }

  get #most(): LaneLimits {
    return mostOf(this.limits);
  }

  #govern(
    kind: SignKind,
    startedAt: number,
    said: (LaneSign & { reply: string }) | null,
  ): { fate: Fate; statements: Statement[] } {
    const now = this.#deps.clock.now();
    const { state, fate } = govern(this.#state, {
      kind,
      now,
      startedAt,
      limits: this.#most,
      took: this.#taken.lately(now),
      namedMs: said?.namedMs ?? null,
      cause: said === null ? null : { category: said.category, reply: said.reply, at: now },
    });
    return { fate, statements: this.#change(state) };
  }

  #change(state: LaneState): Statement[] {
    if (state === this.#state) return [];
    const { instanceId, clock } = this.#deps;
    this.#state = state;
    this.#version++;
    this.#changedBy = instanceId;
    const [name, version] = [this.name, this.#version];
    const row = { name, version, changedBy: instanceId, changedAt: clock.now(), rank: this.rank };
    return [saveLane({ ...row, state: JSON.stringify(state) })];
  }

  /** No message reports it, so only this process narrows its lane until the next reply stores it. */
  #noteFailedConnection(result: PeerResult): void {
    const { clock } = this.#deps;
    const sign = result.kind === "reply" ? signOf(result) : null;
    const reply = result.kind === "reply" ? `${result.code} ${result.text}` : "";
    if (result.kind === "trouble" && result.stage !== "connect") return;
    this.note(sign ?? { kind: "connections", category: "rate", namedMs: null }, reply, clock.now());
  }
}

/** Returns a state with nothing held against the lane. Its rate stays. */
export function opened(state: LaneState): LaneState {
  return { ...state, opensAt: null, restMs: 0, refusals: 0 };
}

/** Returns the limits in the governor's units. */
export function mostOf({ rate, connections }: ProviderLimits): LaneLimits {
  return { rate: (rate === 0 ? UNLIMITED_RATE : rate) * 60, connections };
}

/** Returns the condition of a state. */
export function wordOf(state: LaneState, limits: LaneLimits, now: number): LaneWord {
  if (isBlocked(state)) return "blocked";
  if (rests(state, now)) return "resting";
  return state.rate < limits.rate || state.connections < limits.connections ? "slowed" : "steady";
}

/** A state may have been written under other limits, or by a clock that was ahead. */
export function bounded(state: LaneState, limits: LaneLimits, now: number): LaneState {
  const { opensAt } = state;
  return {
    ...state,
    opensAt: opensAt === null ? null : Math.min(opensAt, now + LONGEST_NAMED_MS),
    rate: Math.min(state.rate, limits.rate),
    connections: Math.min(state.connections, limits.connections),
  };
}
