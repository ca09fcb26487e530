import { useSignal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Stats } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { Page } from "../../components/page.tsx";
import { Problem } from "../../controls/problem.tsx";
import { navigate, query, urlWith } from "../../state/router.ts";
import { accountWide, can } from "../../state/session.ts";
import { DAY } from "../../words/time.ts";
import { Checklist } from "./checklist.tsx";
import { HealthPanel } from "./health.tsx";
import { ProvidersPanel } from "./providers.tsx";
import { StatsPanel } from "./stats.tsx";
import { Trouble } from "./trouble.tsx";
import { FailingWebhooks } from "./webhooks.tsx";

/** Minimum time between reloads of the figures while events arrive, ms. */
const REFRESH_MS = 2_000;

/** A span of time that the figures can cover. */
interface Span {
  id: string;
  text: string;
  days: number;
  interval: "hour" | "day";
}

/** The span that is shown first. */
const WEEK: Span = { id: "7d", text: "7 days", days: 7, interval: "day" };
const SPANS: readonly Span[] = [
  { id: "24h", text: "24 hours", days: 1, interval: "hour" },
  WEEK,
  { id: "30d", text: "30 days", days: 30, interval: "day" },
];

/** The state of the project: first steps, figures, trouble and health. */
export function HomePage() {
  /** Number of things that were fixed here. The providers are read again after each. */
  const fixes = useSignal(0);
  const send = (
    <a class="button primary" href="/messages?compose=1">
      Send a message
    </a>
  );
  return (
    <Page title="Home" actions={can("emails:send") ? send : null}>
      <div class="home">
        <FailingWebhooks />
        <Checklist />
        {can("metrics:read") ? <FiguresPanel /> : null}
        {can("emails:read") ? <Trouble /> : null}
        {accountWide.value && can("metrics:read") ? <ProvidersPanel key={fixes.value} /> : null}
        {accountWide.value && can("metrics:read") ? <HealthPanel onFixed={() => void fixes.value++} /> : null}
      </div>
    </Page>
  );
}

/** The figures of a span of time. */
function FiguresPanel() {
  const span = SPANS.find(({ id }) => id === query.value.get("span")) ?? WEEK;
  const stats = useResource(`stats ${span.id}`, () => readStats(span));
  const before = useResource(`stats before ${span.id}`, () => readStatsBefore(span));
  useLiveReload(stats.reload, REFRESH_MS);
  const choose = (id: string) => navigate(urlWith({ span: id === WEEK.id ? null : id }), { replace: true });
  return (
    <section class="panel" aria-label="Figures">
      <header class="panel-head">
        <h2>Figures</h2>
        <fieldset class="segments">
          <legend class="hidden">Span</legend>
          {SPANS.map(({ id, text }) => (
            <button key={id} type="button" aria-pressed={id === span.id} onClick={() => choose(id)}>
              {text}
            </button>
          ))}
        </fieldset>
      </header>
      <Problem error={stats.error.value} onRetry={stats.reload} />
      <StatsPanel stats={stats.value.value} before={before.value.value} interval={span.interval} />
    </section>
  );
}

function readStats({ days, interval }: Span): Promise<Stats> {
  const from = new Date(now() - (days - (interval === "day" ? 1 : 0)) * DAY).toISOString();
  return get<Stats>("/v1/stats", { from: interval === "day" ? from.slice(0, 10) : from, interval });
}

/** Reads the figures of the span before, as long as this one, which has ended. */
function readStatsBefore({ days, interval }: Span): Promise<Stats> {
  const byDay = interval === "day";
  const ago = (count: number) => new Date(now() - count * DAY).toISOString().slice(0, byDay ? 10 : undefined);
  // A day at the end of a range counts as a whole.
  return get<Stats>("/v1/stats", { from: ago(2 * days - (byDay ? 1 : 0)), to: ago(days), interval });
}
