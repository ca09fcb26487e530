import type { Broadcast, BroadcastResults } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { Chart } from "../../components/chart.tsx";
import { shownName } from "../../state/installation.ts";
import { DAY } from "../../words/time.ts";
import { withoutGaps } from "./words.ts";

/** A broadcast older than this is shown by days, milliseconds. */
const BY_DAYS_MS = 7 * DAY;
const HOUR = DAY / 24;

/** Returns the interval between two points of a broadcast's chart. */
export function intervalOf({ startedAt }: Broadcast): "day" | "hour" {
  return startedAt !== null && now() - Date.parse(startedAt) > BY_DAYS_MS ? "day" : "hour";
}

interface OverTimeProps {
  data: BroadcastResults["data"];
  interval: "day" | "hour";
}

/** When its messages arrived, and were opened and clicked. Nothing until there are two hours to compare. */
export function OverTime({ data, interval }: OverTimeProps) {
  const days = interval === "day";
  const points = withoutGaps(data, days ? DAY : HOUR);
  const line = (figure: "delivered" | "opened" | "clicked") => points.map((point) => point[figure]);
  return points.length < 2 ? null : (
    <Chart
      title="Over time"
      times={points.map(({ at }) => at)}
      days={days}
      series={[
        { label: shownName("Delivered"), color: "--good", values: line("delivered") },
        { label: "Opened", color: "--accent-text", values: line("opened") },
        { label: "Clicked", color: "--complaint", values: line("clicked") },
      ]}
    />
  );
}
