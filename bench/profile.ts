/** Shows where the time of a CPU profile went, by room and by function: `bun bench/profile.ts FILE.cpuprofile`. */
import { readFileSync } from "node:fs";

interface Profile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

/** The first pattern that matches a frame's `function file` names its room. */
const ROOMS: readonly [string, RegExp][] = [
  [
    "sqlite",
    /@libsql|\/libsql|src\/store|^(?:statement|step|rows|raw|prepare|all|run|exec)\w* \[?native|databasePrepare|statementRows|rowsNext/i,
  ],
  ["http", /elysia|src\/http|Bun\.serve|^\(?fetch|Response|Request|Headers/],
  ["crypto", /node:crypto|createHash|\bsign\b|Hmac|mail\/dkim/],
  ["json", /^(?:parse|stringify) $/],
  ["mail", /src\/mail|postal-mime|html-to-text/],
  ["smtp", /src\/smtp/],
  ["dns", /src\/net|dns-packet/],
  ["log", /logtape|src\/log/],
  ["queue", /src\/queue/],
  ["flows", /src\/flows|src\/wiring/],
  ["core", /src\/core|typebox/],
  ["gc", /garbage collector|\bgc\b/i],
  ["idle", /\(idle\)/],
];
const SHOWN = 25;

const profile: Profile = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const parents = new Map<number, number>();
for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node.id);
const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
const byRoom = new Map<string, number>();
const byFrame = new Map<string, number>();
let total = 0;

function nameOf(id: number): string {
  const frame = nodes.get(id)?.callFrame;
  const file = frame?.url.replace(/^file:\/\//, "").replace(/^.*\/(?=(?:src|node_modules)\/)/, "") ?? "";
  return `${frame?.functionName || "(anonymous)"} ${file}${file === "" ? "" : `:${frame?.lineNumber}`}`;
}

/** Counts a built-in function for the room that called it. */
function roomOf(id: number): string {
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const name = nameOf(at);
    const room = ROOMS.find(([, pattern]) => pattern.test(name))?.[0];
    if (room !== undefined) return room;
  }
  return "other";
}

profile.samples.forEach((id, at) => {
  const time = (profile.timeDeltas[at] ?? 0) / 1000;
  total += time;
  byRoom.set(roomOf(id), (byRoom.get(roomOf(id)) ?? 0) + time);
  byFrame.set(nameOf(id), (byFrame.get(nameOf(id)) ?? 0) + time);
});
for (const sums of [byRoom, byFrame]) {
  for (const [name, time] of [...sums].sort(([, a], [, b]) => b - a).slice(0, SHOWN))
    console.log(
      `${((100 * time) / total).toFixed(1).padStart(5)} %  ${time.toFixed(0).padStart(6)} ms  ${name}`,
    );
  console.log();
}
