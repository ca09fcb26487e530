import { type LaneRecord, type ReadLanesDeps, readLanes } from "../lanes/read-lanes.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

export interface LaneParts extends Omit<ReadLanesDeps, "db"> {
  db: () => ReadLanesDeps["db"];
}

/** Fails while a provider refuses our address, and warns while a lane rests. */
export function laneCheck({ db, ...deps }: LaneParts): Check {
  return {
    name: "providers",
    needsDatabase: true,
    fix: "Check that the database is reachable.",
    run: async () => findingOf(await readLanes({ ...deps, db: db() })),
  };
}

function findingOf(lanes: readonly LaneRecord[]): Finding {
  const blocked = lanes.filter(({ title, state }) => state === "blocked" && title !== null);
  const [first] = blocked;
  if (first !== undefined) {
    const page = first.delisting ?? "the page that its reply names";
    return fail(
      `Refused by ${named(blocked)}: mail is held. The last reply was: ${first.reply ?? "unknown"}`,
      `Ask to be taken off the block list at ${page}, then call POST /v1/lanes/${first.name}/open. Meanwhile one message an hour tries.`,
      { label: "Open the lane", path: `/v1/lanes/${encodeURIComponent(first.name)}/open` },
    );
  }
  // A project may own the recipient's host and its replies, so its block is a fault of this installation only perhaps.
  const resting = lanes.filter(({ state }) => state === "resting" || state === "blocked");
  if (resting.length === 0) return troubled(lanes) ?? ok("No provider asks us to wait.");
  return warn(
    `Asked to wait by ${named(resting)}.`,
    "Nothing, if it passes within hours. GET /v1/lanes shows the replies.",
  );
}

/** Messages of a day from which on rates mean something. */
const MIN_TRIED = 100;
/** Shares of a day's messages beyond which a provider doubts us, percent. */
const [MOST_REFUSED, MOST_DEFERRED] = [5, 10];

/** Warns of providers that refuse or defer much of today's mail without asking us to wait; null if none does. */
function troubled(lanes: readonly LaneRecord[]): Finding | null {
  const beyond = (kind: "refused" | "deferred", percent: number): LaneRecord[] =>
    lanes.filter(({ title, day: { accepted, deferred, refused, [kind]: count } }) => {
      const tried = accepted + deferred + refused;
      return title !== null && tried >= MIN_TRIED && count * 100 > tried * percent;
    });
  const [refusing, deferring] = [beyond("refused", MOST_REFUSED), beyond("deferred", MOST_DEFERRED)];
  if (refusing.length > 0)
    return warn(
      `More than ${MOST_REFUSED} % of today's mail is refused by ${named(refusing)}.`,
      "Read the replies in the attempts of bounced messages: most are about addresses that do not exist.",
    );
  if (deferring.length === 0) return null;
  return warn(
    `More than ${MOST_DEFERRED} % of today's attempts are deferred by ${named(deferring)}.`,
    "Send less a day to them, and to readers who open first.",
  );
}

/** Names shown in a finding. */
const MAX_NAMED = 5;

function named(lanes: readonly LaneRecord[]): string {
  const shown = lanes.slice(0, MAX_NAMED).map(({ title, name }) => title ?? name);
  const more = lanes.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
