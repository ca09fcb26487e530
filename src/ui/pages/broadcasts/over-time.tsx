import { get } from "../../api/client.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Broadcast, BroadcastResults } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { Chart } from "../../components/chart.tsx";
import { Problem } from "../../controls/problem.tsx";
import { shownName } from "../../state/installation.ts";
import { DAY } from "../../words/time.ts";
import { withoutGaps } from "./words.ts";

/** A broadcast older than this is shown by days, milliseconds. */
const BY_DAYS_MS = 7 * DAY;
const HOUR = DAY / 24;

/** When its messages arrived, and were opened and clicked. Nothing until there are two hours to compare. */
export function OverTime({ record: { id, startedAt, counts } }: { record: Broadcast }) {
  const days = startedAt !== null && now() - Date.parse(startedAt) > BY_DAYS_MS;
  const interval = days ? "day" : "hour";
  const results = useResource(`results ${id} ${interval}`, () =>
    get<BroadcastResults>(`/v1/broadcasts/${encodeURIComponent(id)}/results`, { interval }),
  );
  useReloadAfter(JSON.stringify(counts), results.reload);
  const points = withoutGaps(results.value.value?.data ?? [], days ? DAY : HOUR);
  const line = (figure: "delivered" | "opened" | "clicked") => points.map((point) => point[figure]);
  return (
    <>
      <Problem error={results.error.value} onRetry={results.reload} />
      {points.length < 2 ? null : (
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
      )}
    </>
  );
}
