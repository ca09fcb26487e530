import type { Chance } from "../support/chance.ts";
import { agree, itemsOf, membersOf, shownTime } from "./agree.ts";
import { ask } from "./request.ts";
import { DAY_MS, type Happened, type Project, type World } from "./state.ts";

/** The figure that counts an event of a recipient. */
const FIGURE_OF: Readonly<Record<string, string>> = {
  accepted: "accepted",
  sent: "sent",
  delivery: "delivered",
  delivery_delayed: "delayed",
  bounce: "bounced",
  complaint: "complained",
  rejected: "rejected",
  failed: "failed",
  rendering_failure: "failed",
  inbound_received: "received",
  open: "opened",
  click: "clicked",
};
const FIGURES = [
  "accepted",
  "sent",
  "delivered",
  "delayed",
  "bounced",
  "complained",
  "rejected",
  "failed",
  "opened",
  "clicked",
  "received",
];

type Figures = Record<string, number>;

function none(): Figures {
  return Object.fromEntries(FIGURES.map((name) => [name, 0]));
}

/** The sums of the project's events, by interval. */
function figuresOf(project: Project, intervalMs: number): Map<number, Figures> {
  const by = new Map<number, Figures>();
  const count = (type: string, at: number): void => {
    const figure = FIGURE_OF[type];
    if (figure === undefined) return;
    const begin = Math.floor(at / intervalMs) * intervalMs;
    const figures = by.get(begin) ?? none();
    figures[figure] = (figures[figure] ?? 0) + 1;
    by.set(begin, figures);
  };
  for (const message of project.messages) {
    for (const type of message.events) count(type, message.createdAt);
    for (const { events } of message.recipients)
      for (const event of events) if (isCounted(event, events)) count(event.type, event.at);
  }
  return by;
}

/** Returns whether an event counts. Of opens and clicks only the first by a person does, for each recipient. */
function isCounted(event: Happened, events: readonly Happened[]): boolean {
  const { machine, type } = event;
  if (machine === undefined) return true;
  return !machine && events.find((other) => other.type === type && other.machine === false) === event;
}

const HOUR_MS = 3_600_000;

/** The counters equal the events, in each interval and in total. */
export async function checkStats(world: World, chance: Chance, project: Project): Promise<void> {
  const now = world.stage.clock.now();
  const [interval, ms, back] = chance.pick([
    ["hour", HOUR_MS, 3 * DAY_MS],
    ["day", DAY_MS, 90 * DAY_MS],
  ] as const);
  const from = Math.floor((now - back) / ms) * ms;
  const to = Math.floor(now / ms) * ms + ms;
  const path = `/v1/stats?from=${shownTime(from)}&to=${shownTime(to)}&interval=${interval}`;
  const asked = { account: project.account, project, method: "GET", path, scope: "metrics:read" };
  const { data, totals, rates } = membersOf((await ask(world, chance, asked, { status: 200 })).body);
  const expected = figuresOf(project, ms);
  const sum = none();
  for (const item of itemsOf(data)) {
    const at = Date.parse(String(membersOf(item).at));
    const figures = expected.get(at) ?? none();
    agree(item, figures, `the figures of ${project.name} at ${shownTime(at)}`);
    for (const name of FIGURES) sum[name] = (sum[name] ?? 0) + (figures[name] ?? 0);
  }
  agree(totals, sum, `the totals of ${project.name}`);
  if (project.messages.length === 0) agree(rates, { bounce: 0, complaint: 0 }, "the rates of nothing");
}
