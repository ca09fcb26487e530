import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { theme } from "../state/theme.ts";
import { countText } from "../words/amounts.ts";
import { dayText, minuteText } from "../words/time.ts";

export interface Series {
  label: string;
  /** Name of a colour of the style sheet, such as `--good`. */
  color: string;
  values: readonly number[];
}

interface ChartProps {
  title: string;
  /** Start of each interval, milliseconds. */
  times: readonly number[];
  series: readonly Series[];
  /** True if each interval is a day in UTC, as the API counts days. */
  days: boolean;
}

type Library = typeof uPlot;

/** Pixels. */
const HEIGHT = 140;
const TICK_SPACE = { x: 90, y: 36 };

/** Lines over time, with exact values on hover and a table for screen readers. */
export function Chart({ title, times, series, days }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const tip = useRef<HTMLDivElement>(null);
  const shown = useRef({ times, series });
  shown.current = { times, series };
  const shape = series.map(({ label }) => label).join();
  const colors = theme.value;

  // New values are handed over below without a new chart.
  useLayoutEffect(() => {
    const host = box.current;
    if (host === null) return;
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: host.clientWidth, height: HEIGHT }),
    );
    let gone = false;
    void loadLibrary().then((Library) => {
      if (gone) return;
      const latest = shown.current;
      const options = optionsOf(Library, { host, series: latest.series, days, tip });
      plot.current = new Library(options, dataOf(latest.times, latest.series), host);
      observer.observe(host);
    });
    return () => {
      gone = true;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, colors, days]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);

  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <span class="legend" aria-hidden="true">
          {series.map(({ label, color }) => (
            <span key={label} class={`legend-item ${color.slice(2)}`}>
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="chart-box" ref={box} aria-hidden="true">
        <div class="chart-tip" ref={tip} hidden />
      </div>
      <ChartTable title={title} times={times} series={series} days={days} />
    </figure>
  );
}

/** Loads the chart library, which a page's first content does not need. */
async function loadLibrary(): Promise<Library> {
  return (await import("uplot")).default;
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])];
}

function colorOf(host: HTMLElement, name: string): string {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

function timeText(at: number, days: boolean): string {
  return days ? `${dayText(at, "UTC")} UTC` : `${dayText(at)}, ${minuteText(at)}`;
}

interface Parts extends Pick<ChartProps, "series" | "days"> {
  host: HTMLElement;
  tip: { current: HTMLDivElement | null };
}

function optionsOf(Library: Library, { host, series, days, tip }: Parts): uPlot.Options {
  const resolve = resolver(host);
  const text = resolve("--text-3");
  const line = resolve("--line");
  const axis = {
    stroke: text,
    font: `11px ${colorOf(host, "--sans") || "sans-serif"}`,
    ticks: { show: false },
  };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    // Otherwise the ticks of days in UTC would be at midnight of the reader's zone.
    ...(days ? { tzDate: (seconds: number) => Library.tzDate(new Date(seconds * 1000), "Etc/UTC") } : {}),
    padding: [8, 20, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, top) => [0, Math.max(4, top * 1.1)] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: TICK_SPACE.x,
        grid: { show: false },
        values: (_, ticks) => ticks.map((tick) => tickText(tick * 1000, days)),
      },
      {
        ...axis,
        size: 44,
        space: TICK_SPACE.y,
        grid: { stroke: line, width: 1 },
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? countText(tick) : "")),
      },
    ],
    series: [
      {},
      ...series.map(({ label, color }) => ({
        label,
        stroke: resolve(color),
        width: 1.5,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [(plot) => showTip(plot, { series, days, tip })] },
  };
}

/** Returns the text of a tick on the time axis. */
function tickText(at: number, days: boolean): string {
  return days ? dayText(at, "UTC") : minuteText(at);
}

/** Returns a function that gives the colour of a custom property as a canvas takes it. */
function resolver(host: HTMLElement): (name: string) => string {
  return (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    host.append(probe);
    const color = getComputedStyle(probe).color;
    probe.remove();
    return color;
  };
}

function showTip(plot: uPlot, { series, days, tip: { current: tip } }: Omit<Parts, "host">): void {
  if (tip === null) return;
  const { idx, left = -1 } = plot.cursor;
  const at = typeof idx === "number" ? plot.data[0][idx] : undefined;
  tip.hidden = at === undefined || left < 0;
  if (tip.hidden || typeof idx !== "number" || at === undefined) return;
  const values = series.map(({ label }, index) => `${label} ${countText(plot.data[index + 1]?.[idx] ?? 0)}`);
  tip.textContent = [timeText(at * 1000, days), ...values].join(" · ");
  const room = plot.over.clientWidth;
  tip.style.left = `${Math.min(Math.max(0, left - tip.clientWidth / 2), Math.max(0, room - tip.clientWidth))}px`;
}

/** The figures as a table for screen readers. */
function ChartTable({ title, times, series, days }: ChartProps) {
  return (
    <div class="hidden">
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, index) => (
            <tr key={at}>
              <th scope="row">{timeText(at, days)}</th>
              {series.map(({ label, values }) => (
                <td key={label}>{countText(values[index] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
