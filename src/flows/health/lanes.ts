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
    );
  }
  // A project may own the recipient's host and its replies, so its block is a fault of this installation only perhaps.
  const resting = lanes.filter(({ state }) => state === "resting" || state === "blocked");
  if (resting.length === 0) return ok("No provider asks us to wait.");
  return warn(
    `Asked to wait by ${named(resting)}.`,
    "Nothing, if it passes within hours. GET /v1/lanes shows the replies.",
  );
}

/** Names shown in a finding. */
const MAX_NAMED = 5;

function named(lanes: readonly LaneRecord[]): string {
  const shown = lanes.slice(0, MAX_NAMED).map(({ title, name }) => title ?? name);
  const more = lanes.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
