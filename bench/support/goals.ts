/** The goals of each bench's figures. */
import { type Figures, MOST } from "./figures.ts";

/** One figure with its floor or peer, as the table shows it. */
export interface Line {
  figure: string;
  ours: string;
  beside: string;
  ratio: string;
  goal: string;
  /** Null if there is no goal, or if the peer is not installed here. */
  met: boolean | null;
}

type Bound = readonly ["≥" | "≤" | "<", limit: number];
type Place = readonly [row: string, column: string];

function holds(value: number, [sign, limit]: Bound): boolean {
  if (sign === "≥") return value >= limit;
  return sign === "≤" ? value <= limit : value < limit;
}

/** Throws if a figure is missing, so that a bench that measured nothing does not pass. */
function at(figures: Figures, [row, column]: Place): number {
  const value = figures[row]?.[column];
  if (value === undefined) throw new Error(`no figure: ${row}, ${column}`);
  return value;
}

function shown(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 2 : 0);
}

/** Returns the line of a figure without a peer. */
function alone(figures: Figures, figure: string, ours: Place, unit: string, goal: Bound | null): Line {
  const value = at(figures, ours);
  return {
    figure,
    ours: `${shown(value)} ${unit}`,
    beside: "",
    ratio: "",
    goal: goal === null ? "" : `${goal[0]} ${goal[1]} ${unit}`,
    met: goal === null ? null : holds(value, goal),
  };
}

/** Returns the line of a figure as a multiple of another. `name` says what the other is. */
function times(
  figures: Figures,
  figure: string,
  ours: Place,
  beside: { name: string; place: Place },
  goal: Bound | null,
): Line {
  const [unit, other] = [ours[1], at(figures, beside.place)];
  const ratio = at(figures, ours) / other;
  return {
    figure: `${figure}, ${unit}`,
    ours: shown(at(figures, ours)),
    beside: `${beside.name}: ${shown(other)}`,
    ratio: ratio.toFixed(2),
    goal: goal === null ? "" : `${goal[0]} ${goal[1]}`,
    met: goal === null ? null : holds(ratio, goal),
  };
}

/** Returns the line of a figure as a multiple of a program's that may be missing on this machine. */
function timesPeer(
  figures: Figures,
  figure: string,
  ours: Place,
  row: string,
  name: string,
  goal: Bound,
): Line {
  const place = [row, ours[1]] as const;
  if (figures[row] !== undefined) return times(figures, figure, ours, { name, place }, goal);
  return {
    figure: `${figure}, ${ours[1]}`,
    ours: shown(at(figures, ours)),
    beside: `${name}: not here`,
    ratio: "",
    goal: `${goal[0]} ${goal[1]}`,
    met: null,
  };
}

function accept(figures: Figures): Line[] {
  const floor = { name: "one row, group commit", place: ["one row, group commit", "req/s"] } as const;
  const [api, all, whole] = ["accept, api only", "accept, all roles", "accept to sink, all roles"];
  return [
    times(figures, api, [api, "req/s"], floor, ["≥", 0.4]),
    alone(figures, `${api}, p99`, [api, "p99 ms"], "ms", ["<", 50]),
    times(figures, all, [all, "req/s"], floor, null),
    alone(figures, `${all}, p99`, [all, "p99 ms"], "ms", null),
    alone(figures, whole, [whole, "req/s"], "msg/s", ["≥", 1100]),
    alone(figures, `${whole}, p99`, [whole, "p99 ms"], "ms", ["≤", 50]),
  ];
}

function inbound(figures: Figures): Line[] {
  const small = [["a session a mail", 1.3] as const, ["sessions kept", 1.2] as const].flatMap(
    ([way, goal]) => {
      const checking = "Postfix with SPF, OpenDKIM and OpenDMARC";
      const [name, bare] = [`inbound, ${way}`, "bare listener, group commit"];
      const ours = [name, "msg/s"] as const;
      return [
        timesPeer(figures, name, ours, `Postfix, hold queue, ${way}`, "Postfix, hold queue", ["≥", goal]),
        timesPeer(figures, name, ours, `${checking}, ${way}`, checking, ["≥", 10]),
        times(figures, name, ours, { name: bare, place: [`${bare}, ${way}`, "msg/s"] }, ["≥", 0.5]),
      ];
    },
  );
  const large = ["8 at once of 25 MB, attachment", "8 at once of 25 MB, text"].map((name) =>
    times(figures, name, [name, "RSS growth MB"], { name: "size of one", place: [name, "size MB"] }, [
      "≤",
      4,
    ]),
  );
  return [...small, ...large];
}

function outbound(figures: Figures): Line[] {
  const [name, nodemailer] = ["queue to sink", "nodemailer, nothing stored"];
  const ours = [name, "msg/s"] as const;
  const alone25519 = `${name}, Ed25519`;
  const signing = "Postfix with OpenDKIM, taking and relaying";
  return [
    timesPeer(figures, name, ours, signing, "Postfix with OpenDKIM", ["≥", 7]),
    timesPeer(figures, alone25519, [alone25519, "msg/s"], signing, "Postfix with OpenDKIM", ["≥", 10]),
    times(figures, name, ours, { name: nodemailer, place: [nodemailer, "msg/s"] }, ["≥", 1]),
  ];
}

function queue(figures: Figures): Line[] {
  const queued = (kind: string): string => `${at(figures, ["queued", kind])} queued`;
  const long = `relay, ${queued("long")}`;
  return [
    // Allows for the difference between two runs of one build.
    times(figures, long, ["long", "msg/s"], { name: queued("short"), place: ["short", "msg/s"] }, ["≥", 0.9]),
    alone(figures, `${long}, most RSS`, ["long", "most RSS MB"], "MB", ["<", 250]),
    ...["hangs", "refuses"].map((how) =>
      alone(figures, `message next to ${queued("dead")} for a host that ${how}, slowest`, [how, MOST], "ms", [
        "≤",
        2000,
      ]),
    ),
  ];
}

function idle(figures: Figures): Line[] {
  return ["plain", "TLS"].flatMap((kind) => {
    const name = `${at(figures, [kind, "connections"])} idle, ${kind}`;
    const without = { name: "without", place: [kind, "mail p95 before ms"] } as const;
    return [
      alone(figures, `${name}, growth`, [kind, "growth MB"], "MB", ["≤", 150]),
      times(figures, name, [kind, "mail p95 with ms"], without, ["≤", 2]),
    ];
  });
}

function waiters(figures: Figures): Line[] {
  const name = `${at(figures, ["waiters", "count"])} requests that wait`;
  return [
    alone(figures, `${name}, growth`, ["waiters", "growth MB"], "MB", ["≤", 50]),
    times(
      figures,
      name,
      ["waiters", "growth MB"],
      { name: "bare server", place: ["waiters", "bare server MB"] },
      null,
    ),
    ...["alone", "among"].map((row) =>
      alone(figures, `a waiting request ${row}, slowest wake-up`, [row, MOST], "ms", ["≤", 50]),
    ),
  ];
}

/** Returns, for each kind of page, the case that grows most and the slowest case. The bench prints all of them. */
function lists(figures: Figures): Line[] {
  return ["first", "deep"].flatMap((kind) => {
    const cases = Object.keys(figures).filter((row) => row.startsWith(`${kind}, `));
    const highest = (value: (row: string) => number): string =>
      cases.toSorted((one, other) => value(other) - value(one))[0] ?? `${kind} page`;
    const grown = highest((row) => at(figures, [row, "p50 ms"]) / at(figures, [row, "p50 ms beside"]));
    const slowest = highest((row) => at(figures, [row, "p99 ms"]));
    const few = { name: `${at(figures, [grown, "beside"])}`, place: [grown, "p50 ms beside"] } as const;
    const of = `worst of ${cases.length} lists at ${at(figures, [grown, "messages"])}`;
    return [
      times(figures, `${of} (${grown})`, [grown, "p50 ms"], few, ["≤", 2]),
      alone(figures, `${of} (${slowest}), p99`, [slowest, "p99 ms"], "ms", ["<", 25]),
    ];
  });
}

function textSearch(figures: Figures): Line[] {
  const cases = Object.keys(figures).filter((row) => row !== "index");
  const p99 = (row: string): number => at(figures, [row, "p99 ms"]);
  const slowest = cases.toSorted((one, other) => p99(other) - p99(one))[0] ?? "a search";
  const of = `worst of ${cases.length} searches by words at ${at(figures, [slowest, "messages"])} (${slowest}), p99`;
  return [
    alone(figures, of, [slowest, "p99 ms"], "ms", ["<", 150]),
    alone(figures, "index of words, share of the texts", ["index", "share %"], "%", ["≤", 35]),
  ];
}

function retention(figures: Figures): Line[] {
  const day = (row: string): string => `day ${at(figures, [row, "day"])}`;
  const level = { name: day("level day"), place: ["level day", "MB"] } as const;
  const name = `database on ${day("last day")} of ${at(figures, ["level day", "messages a day"])} messages each`;
  return [times(figures, name, ["last day", "MB"], level, ["≤", 1.3])];
}

/** The lines of each bench. Each function throws if a figure is missing. */
export const GOALS = {
  accept,
  inbound,
  outbound,
  queue,
  idle,
  waiters,
  lists,
  "text-search": textSearch,
  retention,
} as const;
