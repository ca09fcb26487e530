import type { Config } from "../../../config.ts";
import { DAY_MS } from "../../../core/time/units.ts";
import { recipientsByDay, utcDay } from "../../../store/projects/usage.ts";
import type { LaneRecord } from "../../lanes/read-lanes.ts";
import { readLanes } from "../../lanes/read-lanes.ts";
import { wayOfLane } from "../../lanes/providers.ts";
import { type Check, type Finding, ok, warn } from "../check.ts";
import type { LaneParts } from "../lanes.ts";

export interface VolumeParts extends LaneParts {
  settings: Pick<Config, "warmUp" | "destinationRate" | "destinationConnections">;
}

/** Days with which today is compared. */
const BEST_OF_DAYS = 30;
/** Recipients of a day below which growth alarms no provider. */
const MIN_VOLUME = 1000;
/** Age of an address up to which it counts as new, days. */
const NEW_DAYS = 30;
/** Messages a second that providers take only from addresses that they know. */
const FAST_RATE = 20;
/** Lanes that the finding names. */
const MAX_NAMED = 5;

/** Returns the checks of how much leaves in a day, and how fast, against the age of our addresses. */
export function volumeChecks(parts: VolumeParts): Check[] {
  const common = { needsDatabase: true, fix: "Check that the database is reachable." };
  return [
    { ...common, name: "volume", run: () => volume(parts) },
    { ...common, name: "warm-up", run: async () => warmUp(await lanesOf(parts)) },
    { name: "send rate", fix: "Set DESTINATION_RATE.", run: () => sendRate(parts) },
  ];
}

function lanesOf({ db, ...deps }: VolumeParts): Promise<LaneRecord[]> {
  return readLanes({ ...deps, db: db() });
}

/** Compares the recipients accepted today with the best day before. The cap of a new address makes it needless. */
async function volume(parts: VolumeParts): Promise<Finding> {
  const now = parts.clock.now();
  const days = await recipientsByDay(parts.db(), utcDay(now - BEST_OF_DAYS * DAY_MS));
  const today = days.find(({ day }) => day === utcDay(now))?.recipients ?? 0;
  const best = Math.max(
    0,
    ...days.filter(({ day }) => day < utcDay(now)).map(({ recipients }) => recipients),
  );
  const message = `${today} recipients today; the best of the last ${BEST_OF_DAYS} days had ${best}.`;
  if (today < MIN_VOLUME || today <= best * 2) return ok(message);
  const warming = (await lanesOf(parts)).some((lane) => lane.warmUp !== null);
  if (warming) return ok(`${message} New addresses send no more than their warm-up allows.`);
  return warn(message, "Spread large campaigns over days: at most double from one day to the next.");
}

function warmUp(lanes: readonly LaneRecord[]): Finding {
  const warming = lanes.flatMap(({ name, title, warmUp: progress }) =>
    progress === null ? [] : [{ ...progress, to: `${title ?? name} from ${wayOfLane(name).egress ?? "us"}` }],
  );
  if (warming.length === 0) return ok("No address is being warmed up.");
  const full = warming.filter(({ day, cap, used }) => day > 0 && used >= cap);
  const shown = [...full, ...warming.filter((one) => !full.includes(one))].slice(0, MAX_NAMED);
  const lines = shown.map(({ to, day, cap, used }) => `${to}: day ${day}, ${used} of ${cap} used`);
  const more = warming.length > shown.length ? `; ${warming.length - shown.length} more` : "";
  const message = `${lines.join("; ")}${more}.`;
  if (full.length === 0) return ok(message);
  return warn(
    message,
    "Further mail leaves from the other addresses of the pool, or waits until tomorrow. Send less, or to the most active readers first.",
  );
}

function sendRate({ clock, settings, usual }: VolumeParts): Finding {
  const { warmUp: firstDays, destinationRate: rate, destinationConnections: connections } = settings;
  const today = Math.floor(clock.now() / DAY_MS);
  const young = [...firstDays].filter(([, first]) => today - first < NEW_DAYS).map(([ip]) => ip);
  const pace = rate === 0 ? "without a limit" : `at ${rate} messages a second`;
  const shown = `${pace} over ${connections} connections of up to ${usual.messages} messages to a destination`;
  if (young.length === 0) return ok(`No address is younger than ${NEW_DAYS} days. Mail leaves ${shown}.`);
  if (rate !== 0 && rate < FAST_RATE) return ok(`Mail leaves ${shown}, also from ${young.join(", ")}.`);
  return warn(
    `Mail to hosts of no known provider leaves ${shown}, also from ${young.join(", ")}, which began less than ${NEW_DAYS} days ago.`,
    `Set DESTINATION_RATE below ${FAST_RATE} until then, such as 5.`,
  );
}
