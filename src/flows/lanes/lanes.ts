import { createHash } from "node:crypto";
import { setBounded } from "../../core/collections.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { addLaneFigures, deleteOldLanes, type LaneRow, listLanes } from "../../store/installation/lanes.ts";
import {
  beginWarmUp,
  continueWarmUp,
  deleteOldWarmUps,
  listWarmUps,
} from "../../store/installation/warm-ups.ts";
import { Lane, type LaneDeps } from "./lane.ts";
import { stepAfter } from "./warm-up.ts";
import { type ProviderLimits, providerLane, providerOfLane, wayOfLane } from "./providers.ts";

/**
 * Maximum number of lanes that a process remembers. If there are more, the one that was not looked up for longest
 * is forgotten.
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
  readonly #byName = new Map<string, Lane>();
  /** The rows of the database at the last read. */
  #stored: ReadonlyMap<string, LaneRow> = new Map();
  #cleanedOn = 0;

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
  ofRelay(routeId: string, rate: number): Lane {
    const name = `relay:${routeId}`;
    const known = this.#byName.get(name);
    if (known !== undefined && known.limits.rate === rate) return known;
    const lane = this.#adopted(new Lane(this.#deps, name, null, { ...this.#deps.usual, rate }));
    setBounded(this.#byName, name, lane, MAX_LANES);
    return lane;
  }

  named(name: string): Lane {
    const known = this.#byName.get(name);
    const lane = known ?? this.#open(name);
    setBounded(this.#byName, name, lane, MAX_LANES);
    return lane;
  }

  #open(name: string): Lane {
    const provider = providerOfLane(name);
    const lane = new Lane(this.#deps, name, provider, limitsOfLane(name, this.#deps), this.#warmsFrom(name));
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

  /** Returns the first day of a lane's address if that is new. Hosts that are no provider's get too little to notice. */
  #warmsFrom(name: string): number | null {
    const { egress } = wayOfLane(name);
    if (egress === null || providerOfLane(name) === null) return null;
    return this.#deps.warmUps?.get(egress) ?? null;
  }

  /** Reads how far the addresses have come, and goes on to the next day. Returns the lanes that warm up. */
  async #warmUp(): Promise<Lane[]> {
    const warming = [...this.#byName.values()].filter(({ isWarming }) => isWarming);
    if (warming.length === 0) return [];
    const { db, clock } = this.#deps;
    const today = Math.floor(clock.now() / DAY_MS);
    const rows = new Map((await listWarmUps(db)).map((row) => [row.lane, row]));
    const statements: Statement[] = [];
    for (const lane of warming) {
      const row = rows.get(lane.name);
      if (row === undefined) statements.push(beginWarmUp(lane.name, today));
      else if (row.day < today) {
        const step = stepAfter(row.step, { ...row, blocked: row.blocked === 1 });
        statements.push(continueWarmUp(lane.name, row.day, { day: today, step }));
        lane.warmTo({ day: today, step, used: 0 });
        continue;
      }
      const { step = 0, accepted = 0, deferred = 0, refused = 0 } = row ?? {};
      lane.warmTo({ day: today, step, used: accepted + deferred + refused });
    }
    if (statements.length > 0) await db.write(statements);
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
    for (const lane of this.#byName.values()) {
      const counts = lane.takeCounts();
      // Of the many hosts that are no provider's, only those that have trouble are worth a row.
      if (lane.provider === null && lane.word === "steady" && counts.deferred + counts.refused === 0)
        continue;
      const figures = { lane: lane.name, ...counts, waiting: waiting.get(lane.name) ?? 0 };
      if (counts.accepted + counts.deferred + counts.refused + figures.waiting > 0)
        statements.push(addLaneFigures(day, instanceId, figures));
    }
    if (statements.length > 0) await db.write(statements);
  }
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
  if (isPlain && variant === "") return name;
  // A DNS name may hold any character (RFC 2181 §11), so the hash is over an unambiguous string.
  const hash = createHash("sha256")
    .update(JSON.stringify([sorted, variant]))
    .digest("hex")
    .slice(0, 16);
  return `${name.replace(/[^\w.+-]/g, "_").slice(0, MAX_NAME_CHARS)}~${hash}`;
}
