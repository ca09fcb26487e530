import { useSignal } from "@preact/signals";
import { get, post } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Lane } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { countText } from "../../words/amounts.ts";
import type { Tone } from "../../words/status.ts";

/** Minimum time between reloads while events arrive, ms. */
const REFRESH_MS = 5_000;
/** Maximum number of lanes that are shown at first. Those that need attention come before the others. */
const SHOWN_LANES = 20;

const STATES: Readonly<Record<Lane["state"], { tone: Tone; word: string }>> = {
  blocked: { tone: "bad", word: "Blocked" },
  resting: { tone: "late", word: "Waiting" },
  slowed: { tone: "moving", word: "Slowed" },
  steady: { tone: "good", word: "Steady" },
};
const ORDER = Object.keys(STATES);

/** The providers that mail leaves for: what they take today, and what they ask of us. Nothing if there are none. */
export function ProvidersPanel() {
  const lanes = useResource("lanes", () => get<{ data: Lane[] }>("/v1/lanes", {}, { account: true }));
  const all = useSignal(false);
  useLiveReload(lanes.reload, REFRESH_MS);
  const found = lanes.value.value?.data ?? [];
  if (found.length === 0) return <Problem error={lanes.error.value} onRetry={lanes.reload} />;
  const sorted = found.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  return (
    <section class="panel" aria-label="Providers">
      <header class="panel-head">
        <h2>Providers</h2>
        <span class="quiet">today (UTC)</span>
      </header>
      <Lanes lanes={all.value ? sorted : sorted.slice(0, SHOWN_LANES)} onOpened={lanes.reload} />
      {sorted.length > SHOWN_LANES ? (
        <button
          type="button"
          class="button small"
          aria-expanded={all.value}
          onClick={() => (all.value = !all.value)}
        >
          {all.value ? "Show fewer" : `Show ${countText(sorted.length - SHOWN_LANES)} more`}
        </button>
      ) : null}
    </section>
  );
}

interface LanesProps {
  lanes: readonly Lane[];
  /** Called when a lane was opened. */
  onOpened: () => void;
}

function Lanes({ lanes, onOpened }: LanesProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
    <section class="scroll-x" tabIndex={0} aria-label="Lanes">
      <table class="table">
        <caption class="hidden">Providers</caption>
        <thead>
          <tr>
            <th scope="col">Provider</th>
            <th scope="col">State</th>
            {["Rate", "Accepted", "Deferred", "Refused", "Warm-up"].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lanes.map((lane) => (
            <LaneRow key={lane.name} lane={lane} onOpened={onOpened} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function LaneRow({ lane, onOpened }: { lane: Lane; onOpened: () => void }) {
  const { name, title, egress, state, opensAt, reply, day, warmUp } = lane;
  const { tone, word } = STATES[state];
  return (
    <tr>
      <th scope="row" title={name}>
        {title ?? name.split("@")[0]}
        {egress === null ? null : <span class="quiet"> from {egress}</span>}
      </th>
      <td>
        <Dot tone={tone} word={word} title={reply ?? undefined} />
        {opensAt === null ? null : (
          <span class="quiet">
            {" "}
            until <LocalTime at={opensAt} short />
          </span>
        )}
        {state === "blocked" || state === "resting" ? <OpenLane lane={lane} onOpened={onOpened} /> : null}
      </td>
      <td class="number">{rateText(lane)}</td>
      <td class="number">{countText(day.accepted)}</td>
      <td class="number">{countText(day.deferred)}</td>
      <td class="number">{countText(day.refused)}</td>
      <td class="number">{warmUp === undefined ? "–" : warmUpText(warmUp)}</td>
    </tr>
  );
}

/** The button that lets mail leave at once, for when the provider has said that it takes mail again. */
function OpenLane({ lane: { name, title }, onOpened }: { lane: Lane; onOpened: () => void }) {
  const task = useTask();
  if (!can("senders:write")) return null;
  const open = () =>
    task.run(async () => {
      await post(`/v1/lanes/${encodeURIComponent(name)}/open`, undefined, { account: true });
      onOpened();
    });
  return (
    <>
      {" "}
      <button
        type="button"
        class="button small"
        aria-label={`Open ${title ?? name}`}
        disabled={task.busy.value}
        onClick={() => void open()}
      >
        Open
      </button>
      <Problem error={task.error.value} />
    </>
  );
}

/** Messages a second, of those that its limit allows. */
function rateText({ rate, limit }: Lane): string {
  if (rate === null) return "no limit";
  const shown = rate < 1 ? `${Math.max(1, Math.round(rate * 60))}/min` : `${Math.round(rate)}/s`;
  return limit === null ? shown : `${shown} of ${limit}/s`;
}

function warmUpText({ day, cap, used }: NonNullable<Lane["warmUp"]>): string {
  return day === 0 ? "not begun" : `day ${day}: ${countText(used)} of ${countText(cap)}`;
}
