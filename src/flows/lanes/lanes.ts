import { createHash } from "node:crypto";
import { RankedMap } from "../../core/collections.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import {
  addLaneFigures,
  deleteOldLanes,
  type LaneFigures,
  type LaneRow,
  listLanes,
} from "../../store/installation/lanes.ts";
import {
  beginWarmUp,
  continueWarmUp,
  deleteOldWarmUps,
  listWarmUps,
  type WarmUpRow,
} from "../../store/installation/warm-ups.ts";
import { Lane, type LaneDeps, RANKS } from "./lane.ts";
import { attemptsOf, type Counts } from "./day-counts.ts";
import { stepAfter, USUAL_TARGET, type WarmUpPlan } from "./warm-up.ts";
import { type ProviderLimits, providerLane, providerOfLane, relayLane, wayOfLane } from "./providers.ts";

/**
 * Maximum number of lanes that a process remembers. Anyone can make lanes, with a domain for each. So a steady one is
 * forgotten first, and a provider's last.
 */
export const MAX_LANES = 50_000;
/** Longest name of a lane, characters. A longer one is cut and ends with a hash. */
const MAX_NAME_CHARS = 200;

/** Limits by the name of a lane or provider: the setting `LANES`. */
export type LaneOverrides = ReadonlyMap<string, ProviderLimits>;

export interface LanesDeps extends LaneDeps {
  db: Db;
  /** Limits of lanes that are no provider's. */
  usual: ProviderLimits;
  overrides: LaneOverrides;
  /** First day of each address of ours that is new, in days since 1970. */
  warmUps?: ReadonlyMap<string, number>;
}

/** The lanes that this process knows. */
export class Lanes {
  readonly #deps: LanesDeps;
  readonly #byName = new RankedMap<string, Lane>(RANKS, ({ rank }) => rank, MAX_LANES);
  /** The rows of the database at the last read. */
  #stored: ReadonlyMap<string, LaneRow> = new Map();
  #cleanedOn = 0;
  /** Lanes that the database shows with waiting messages of this process. */
  readonly #waited = new Set<string>();

  constructor(deps: LanesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the lane of a set of MX hosts: their provider's, else their own.
   * @param variant tells sets of the same hosts apart that must not share a connection
   * @param egress our address that mail leaves from, which has its own lanes; null if the system chooses it
   */
  ofHosts(hosts: readonly string[], variant: string, egress: string | null = null): Lane {
    const name = providerLane(hosts)?.name ?? hostsName(hosts, variant);
    return this.named(egress === null ? name : `${name}@${egress}`);
  }

  /** Returns the lane of a relay, which has its own rate: messages a second, 0 for no limit. */
  ofRelay(routeId: string, rate: number, plan: WarmUpPlan | null = null): Lane {
    const name = relayLane(routeId);
    const known = this.#byName.get(name);
    const lane =
      known?.limits.rate === rate
        ? known
        : this.#adopted(new Lane(this.#deps, name, null, { ...this.#deps.usual, rate }));
    lane.warm(routeId, plan);
    this.#byName.set(name, lane);
    return lane;
  }

  named(name: string): Lane {
    const known = this.#byName.get(name);
    const lane = known ?? this.#open(name);
    this.#byName.set(name, lane);
    return lane;
  }

  #open(name: string): Lane {
    const provider = providerOfLane(name);
    const lane = new Lane(
      this.#deps,
      name,
      provider,
      limitsOfLane(name, this.#deps),
      planOfSetting(name, this.#deps),
    );
    return this.#adopted(lane);
  }

  #adopted(lane: Lane): Lane {
    const stored = this.#stored.get(lane.name);
    if (stored !== undefined) lane.adopt(stored);
    return lane;
  }

  /** Reads what other processes have written. Returns the lanes that changed. */
  async refresh(): Promise<Lane[]> {
    const rows = await listLanes(this.#deps.db);
    this.#stored = new Map(rows.map((row) => [row.name, row]));
    const changed: Lane[] = [];
    for (const row of rows) {
      const lane = this.#byName.get(row.name);
      if (lane?.adopt(row) === true) changed.push(lane);
    }
    return [...changed, ...(await this.#warmUp())];
  }

  /** Reads how far the addresses have come, and continues with the next day. Returns the lanes that warm up. */
  async #warmUp(): Promise<Lane[]> {
    const warming = [...this.#byName.values()].filter(({ isWarming }) => isWarming);
    if (warming.length === 0) return [];
    const { db, clock } = this.#deps;
    const today = Math.floor(clock.now() / DAY_MS);
    const read = async () => new Map((await listWarmUps(db)).map((row) => [row.lane, row]));
    const before = await read();
    const statements = warming.flatMap((lane) => toToday(lane, before.get(lane.name), today));
    if (statements.length > 0) await db.write(statements);
    const rows = statements.length > 0 ? await read() : before;
    for (const lane of warming) {
      const { day = today, step = 0, accepted = 0, deferred = 0, refused = 0 } = rows.get(lane.name) ?? {};
      lane.warmTo({ day, step, used: attemptsOf({ accepted, deferred, refused }) });
    }
    return warming;
  }

  /** Stores what was counted since the last call. @param waiting recipients that wait here, by lane */
  async storeFigures(waiting: ReadonlyMap<string, number>): Promise<void> {
    const { clock, db, instanceId } = this.#deps;
    const now = clock.now();
    const day = Math.floor(now / DAY_MS);
    const statements: Statement[] = [];
    if (day !== this.#cleanedOn) statements.push(...deleteOldLanes(now, day), deleteOldWarmUps());
    this.#cleanedOn = day;
    const lanes = [...this.#byName.values()].map((lane) => ({ lane, counts: lane.counts }));
    for (const { lane, counts } of lanes) {
      const figures = this.#figuresOf(lane, counts, { day, waiting: waiting.get(lane.name) ?? 0 });
      statements.push(...figures.map((one) => addLaneFigures(one.day, instanceId, one)));
    }
    if (statements.length > 0) await db.write(statements);
    for (const { lane, counts } of lanes) lane.noteStored(counts);
  }

  /** Returns what to store of a lane. Of the many hosts that are no provider's, only those with trouble are worth a row. */
  #figuresOf(
    lane: Lane,
    counts: readonly Counts[],
    today: { day: number; waiting: number },
  ): (LaneFigures & { day: number })[] {
    const waited = this.#waited.delete(lane.name);
    const hasTrouble =
      lane.word !== "steady" || counts.some(({ deferred, refused }) => deferred + refused > 0);
    if (lane.provider === null && !lane.isWarming && !hasTrouble && !waited) return [];
    if (today.waiting > 0) this.#waited.add(lane.name);
    const isCounted = counts.some(({ day }) => day === today.day);
    const none = { day: today.day, accepted: 0, deferred: 0, refused: 0 };
    const days = isCounted || (today.waiting === 0 && !waited) ? counts : [...counts, none];
    return days.map((one) => {
      const waiting = one.day === today.day ? today.waiting : 0;
      return { ...one, lane: lane.name, waiting };
    });
  }
}

/** Returns what begins a lane's warm-up, takes it to the next day, or gives it another target. */
function toToday({ name, plan }: Lane, row: WarmUpRow | undefined, today: number): Statement[] {
  const target = plan?.target ?? USUAL_TARGET;
  if (row === undefined) return [beginWarmUp(name, today, target)];
  if (row.day >= today && row.target === target) return [];
  const step = row.day < today ? stepAfter(row.step, row) : row.step;
  return [continueWarmUp(name, row.day, { day: Math.max(row.day, today), step, target })];
}

/** Returns the warm-up of a lane's address if a setting asks for one. Hosts that are no provider's get too little to notice. */
export function planOfSetting(name: string, { warmUps }: Pick<LanesDeps, "warmUps">): WarmUpPlan | null {
  const { egress } = wayOfLane(name);
  if (egress === null || providerOfLane(name) === null) return null;
  const from = warmUps?.get(egress);
  return from === undefined ? null : { from, target: USUAL_TARGET };
}

/** Returns the limits of a lane: those of the setting, else its provider's, else the usual ones. */
export function limitsOfLane(
  name: string,
  { overrides, usual }: Pick<LanesDeps, "overrides" | "usual">,
): ProviderLimits {
  const provider = providerOfLane(name);
  const names = [name, wayOfLane(name).name, ...(provider === null ? [] : [provider.name])];
  const own = names.map((one) => overrides.get(one)).find((one) => one !== undefined);
  return own ?? provider ?? usual;
}

/** Returns the name of hosts that are no provider's: `mx1.example.com+mx2.example.com`. */
function hostsName(hosts: readonly string[], variant: string): string {
  const sorted = [...hosts].sort();
  const name = sorted.join("+");
  const isPlain = sorted.every((host) => /^[\w.-]+$/.test(host)) && name.length <= MAX_NAME_CHARS;
  // A stranger may name a host as one of our lanes, such as "mail.ru", which is a host of that provider's, too.
  if (isPlain && variant === "" && providerOfLane(name) === null) return name;
  // A DNS name may hold any character (RFC 2181 §11), so the hash is over an unambiguous string.
  const hash = createHash("sha256")
    .update(JSON.stringify([sorted, variant]))
    .digest("hex")
    .slice(0, 16);
  return `${name.replace(/[^\w.+-]/g, "_").slice(0, MAX_NAME_CHARS)}~${hash}`;
}
