import { Chart } from "../../components/chart.tsx";
import type { Figures, Stats } from "../../api/types.ts";
import { countText, percentText } from "../../words/amounts.ts";
import { Dot } from "../../components/status.tsx";
import { shownName } from "../../state/installation.ts";
import type { Tone } from "../../words/status.ts";
import { duration } from "../../words/time.ts";

/** One figure over the charts. */
interface Counter {
  name: string;
  count: (totals: Figures) => number;
  /** The list of the messages that it counts. */
  href?: string;
  note?: (stats: Stats) => string;
}

const COUNTERS: readonly Counter[] = [
  { name: "Accepted", count: ({ accepted }) => accepted, href: "/messages?direction=outbound" },
  {
    name: "Delivered",
    count: ({ delivered, sent }) => delivered + sent,
    href: "/messages?status=delivered&direction=outbound",
  },
  {
    name: "Bounced",
    count: ({ bounced }) => bounced,
    href: "/messages?status=bounced",
    note: ({ rates }) => rateText(rates.bounce),
  },
  {
    name: "Complained",
    count: ({ complained }) => complained,
    href: "/messages?status=complained",
    note: ({ rates }) => rateText(rates.complaint),
  },
  { name: "Opened", count: ({ opened }) => opened },
  { name: "Received", count: ({ received }) => received, href: "/messages?direction=inbound" },
];

/** A rate of nothing is left out, because simulated messages count above but in no rate. */
function rateText(rate: number): string {
  return rate === 0 ? "" : percentText(rate);
}

interface StatsProps {
  stats: Stats | null;
  /** The span before, which is as long. */
  before: Stats | null;
  interval: "hour" | "day";
}

/** Totals with those of the span before, lines over time and the destinations. */
export function StatsPanel({ stats, before, interval }: StatsProps) {
  return (
    <>
      <dl class="counters">
        {COUNTERS.map(({ name, count, href, note }) => (
          <div key={name} class="counter">
            <dt>{href === undefined ? name : <a href={href}>{shownName(name)}</a>}</dt>
            <dd>
              <strong>{stats === null ? "–" : countText(count(stats.totals))}</strong>
              {stats === null || note === undefined ? null : <span class="quiet">{note(stats)}</span>}
            </dd>
            <dd class="quiet">{before === null ? " " : `${countText(count(before.totals))} before`}</dd>
          </div>
        ))}
      </dl>
      {stats === null ? <div class="chart-space" /> : <Charts stats={stats} interval={interval} />}
      {stats === null || stats.byDestination.length === 0 ? null : <Destinations stats={stats} />}
      {stats === null || stats.byProvider.length === 0 ? null : <ByProvider providers={stats.byProvider} />}
    </>
  );
}

function Charts({ stats, interval }: { stats: Stats; interval: "hour" | "day" }) {
  const times = stats.data.map(({ at }) => Date.parse(at));
  const line = (name: keyof Figures) => stats.data.map((figures) => figures[name]);
  const days = interval === "day";
  const delivered = stats.data.map((figures) => figures.delivered + figures.sent);
  return (
    <div class="charts">
      <Chart
        title="Sent"
        times={times}
        days={days}
        series={[
          { label: shownName("Delivered"), color: "--good", values: delivered },
          { label: "Delayed", color: "--late", values: line("delayed") },
          { label: "Bounced", color: "--bad", values: line("bounced") },
        ]}
      />
      <Chart
        title="Received and opened"
        times={times}
        days={days}
        series={[
          { label: "Received", color: "--moving", values: line("received") },
          { label: "Opened", color: "--accent-text", values: line("opened") },
          { label: "Clicked", color: "--complaint", values: line("clicked") },
        ]}
      />
    </div>
  );
}

const STANDINGS: Readonly<Record<"good" | "warn" | "bad", { tone: Tone; title: string }>> = {
  good: { tone: "good", title: "Fewer than 0.1 % complain" },
  warn: { tone: "late", title: "From 0.1 % providers grow wary: send to those who want it" },
  bad: { tone: "bad", title: "From 0.3 % providers refuse mail" },
};

/** The outcomes at large providers, and how many of their users complain. */
function ByProvider({ providers }: { providers: Stats["byProvider"] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
    <section class="scroll-x" tabIndex={0} aria-label="By provider">
      <table class="table">
        <caption class="hidden">By provider</caption>
        <thead>
          <tr>
            <th scope="col">Provider</th>
            {["Delivered", "Delayed", "Bounced", "Complaints"].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {providers.map(({ provider, title, delivered, delayed, bounced, complaintRate, standing }) => (
            <tr key={provider}>
              <th scope="row">{title}</th>
              <td class="number">{countText(delivered)}</td>
              <td class="number">{countText(delayed)}</td>
              <td class="number">{countText(bounced)}</td>
              <td class="number">
                {standing === null ? (
                  percentText(complaintRate)
                ) : (
                  <Dot {...STANDINGS[standing]} word={percentText(complaintRate)} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Destinations that are shown. */
const SHOWN_DESTINATIONS = 8;

function Destinations({ stats }: { stats: Stats }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
    <section class="scroll-x" tabIndex={0} aria-label="Destinations">
      <table class="table">
        <caption class="hidden">Destinations</caption>
        <thead>
          <tr>
            <th scope="col">Destination</th>
            <th scope="col" class="number">
              {shownName("Delivered")}
            </th>
            <th scope="col" class="number">
              Delayed
            </th>
            <th scope="col" class="number">
              Bounced
            </th>
            <th scope="col" class="number">
              Median time
            </th>
          </tr>
        </thead>
        <tbody>
          {stats.byDestination.slice(0, SHOWN_DESTINATIONS).map((row) => (
            <tr key={row.domain}>
              <th scope="row">{row.domain}</th>
              <td class="number">{countText(row.delivered)}</td>
              <td class="number">{countText(row.delayed)}</td>
              <td class="number">{countText(row.bounced)}</td>
              <td class="number">{row.medianSeconds === null ? "–" : duration(row.medianSeconds * 1000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
