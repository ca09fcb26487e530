import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "../state/theme.ts";
import { countText } from "../words/amounts.ts";
import { formatTime } from "../words/time.ts";

/** One line of a chart. */
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
  /** Writes the time of an interval. */
  timeText: (at: number) => string;
}

/** Pixels. */
const HEIGHT = 140;
const DAY_SECONDS = 86_400;
const TICK_SPACE = { x: 90, y: 36 };

/** Lines over time, with exact values on hover and a table for screen readers. */
export function Chart({ title, times, series, timeText }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const tip = useRef<HTMLDivElement>(null);
  const shape = series.map(({ label }) => label).join();
  const colors = theme.value;

  // New values are handed over below without a new chart.
  useLayoutEffect(() => {
    const host = box.current;
    if (host === null) return;
    plot.current = new uPlot(optionsOf(host, series, tip), dataOf(times, series), host);
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: host.clientWidth, height: HEIGHT }),
    );
    observer.observe(host);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [shape, colors]);
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
      <ChartTable title={title} times={times} series={series} timeText={timeText} />
    </figure>
  );
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])];
}

function colorOf(host: HTMLElement, name: string): string {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

function optionsOf(
  host: HTMLElement,
  series: readonly Series[],
  tip: { current: HTMLDivElement | null },
): uPlot.Options {
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
    padding: [8, 20, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, top) => [0, Math.max(4, top * 1.1)] } },
    axes: [
      { ...axis, size: 24, space: TICK_SPACE.x, grid: { show: false }, values: timeTicks },
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
    hooks: { setCursor: [(plot) => showTip(plot, series, tip.current)] },
  };
}

/** Returns the texts of ticks on the time axis: days, or hours if the ticks are closer. */
function timeTicks(_: uPlot, ticks: number[], __: number, ___: number, seconds: number): string[] {
  const options: Intl.DateTimeFormatOptions =
    seconds >= DAY_SECONDS
      ? { day: "numeric", month: "short" }
      : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return ticks.map((tick) => formatTime(tick * 1000, options));
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

function showTip(plot: uPlot, series: readonly Series[], tip: HTMLDivElement | null): void {
  if (tip === null) return;
  const { idx, left = -1 } = plot.cursor;
  const at = typeof idx === "number" ? plot.data[0][idx] : undefined;
  tip.hidden = at === undefined || left < 0;
  if (tip.hidden || typeof idx !== "number" || at === undefined) return;
  const time = formatTime(at * 1000, { dateStyle: "medium", timeStyle: "short" });
  const values = series.map(({ label }, index) => `${label} ${countText(plot.data[index + 1]?.[idx] ?? 0)}`);
  tip.textContent = [time, ...values].join(" · ");
  const room = plot.over.clientWidth;
  tip.style.left = `${Math.min(Math.max(0, left - tip.clientWidth / 2), Math.max(0, room - tip.clientWidth))}px`;
}

/** The figures as a table for screen readers. */
function ChartTable({ title, times, series, timeText }: ChartProps) {
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
              <th scope="row">{timeText(at)}</th>
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
