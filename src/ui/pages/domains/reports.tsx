import { get, patch } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Domain, Page, PolicyAdvice, ReportRow } from "../../api/types.ts";
import { Chart } from "../../components/chart.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { countText, percentText } from "../../words/amounts.ts";

const PAGE_ROWS = 100;
/** Maximum number of pages of rows that are read. Further rows are left out, and the page says so. */
const MAX_PAGES = 10;
/** Maximum number of sources that are shown, those with the most messages first. */
const MAX_SOURCES = 20;

interface Reports {
  rows: ReportRow[];
  complete: boolean;
}

async function readRows(path: string): Promise<Reports> {
  const rows: ReportRow[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query: Record<string, string> = { kind: "dmarc", limit: String(PAGE_ROWS) };
    const found: Page<ReportRow> = await get(
      `${path}/reports`,
      cursor === null ? query : { ...query, cursor },
    );
    rows.push(...found.data);
    cursor = found.nextCursor;
    if (cursor === null) return { rows, complete: true };
  }
  return { rows, complete: false };
}

interface ReportsProps {
  domain: Domain;
  resource: Resource<Domain>;
  path: string;
}

/**
 * The reports of receivers about the domain: which policy is safe, how mail passes by day, and from which sources it
 * comes. Owners of domains look here before they publish a stricter policy. A list of the API's rows alone would leave
 * the adding up to them.
 */
export function ReportsPart({ domain, resource, path }: ReportsProps) {
  const reports = useResource(`reports ${domain.id}`, () => readRows(path));
  const advice = useResource(`policy ${domain.id}`, () => get<PolicyAdvice>(`${path}/policy-advice`));
  const found = reports.value.value;
  return (
    <section class="detail-part" aria-label="Reports">
      <div class="part-head">
        <h3>Reports of receivers</h3>
        {domain.dmarc === undefined ? null : <AutoSwitch {...{ domain, resource, path, advice }} />}
      </div>
      <Problem error={advice.error.value} onRetry={advice.reload} />
      {advice.value.value === null ? null : <Advice {...advice.value.value} />}
      <Problem error={reports.error.value} onRetry={reports.reload} />
      {found === null || found.rows.length === 0 ? null : (
        <>
          <ByDay rows={found.rows} />
          <Sources rows={found.rows} />
          {found.complete ? null : <p class="hint">Only the latest {found.rows.length} rows are counted.</p>}
        </>
      )}
    </section>
  );
}

function AutoSwitch({ domain, resource, path, advice }: ReportsProps & { advice: Resource<PolicyAdvice> }) {
  const task = useTask();
  const auto = domain.dmarc === "auto";
  const turn = () =>
    task.run(async () => {
      resource.set(await patch<Domain>(path, { dmarc: auto ? "manual" : "auto" }));
      advice.reload();
    });
  return (
    <>
      <Problem error={task.error.value} />
      <button
        type="button"
        class="switch"
        role="switch"
        aria-checked={auto}
        aria-label="Let reports move the DMARC policy"
        disabled={task.busy.value || !can("domains:write")}
        onClick={() => void turn()}
      >
        <span class="switch-track" aria-hidden="true" />
        {auto ? "Policy moves by itself" : "Policy stays at none"}
      </button>
    </>
  );
}

const STRICTNESS = ["none", "quarantine", "reject"];

function Advice({ now, safe, reasons, moves }: PolicyAdvice) {
  const change = STRICTNESS.indexOf(safe) - STRICTNESS.indexOf(now ?? "none");
  const [word, tone] =
    change > 0
      ? ([`Safe to move to ${safe}`, "good"] as const)
      : change < 0
        ? ([`Go back to ${safe}`, "bad"] as const)
        : (["Stay", "quiet"] as const);
  const [latest] = moves;
  return (
    <>
      <p class="answer" role="status">
        <Dot word={word} tone={tone} />
        <span>
          {now === null ? "No DMARC policy is published." : `The published DMARC policy is ${now}.`}
        </span>
      </p>
      {reasons.map((reason) => (
        <p class="quiet" key={reason}>
          {reason}
        </p>
      ))}
      {latest === undefined ? null : (
        <p class="quiet">
          Moved from {latest.from} to {latest.to} at <LocalTime at={latest.at} />.
        </p>
      )}
    </>
  );
}

interface Sum {
  messages: number;
  failed: number;
  counts: boolean;
}

/** Adds up the rows by a key. */
function sumsBy(rows: readonly ReportRow[], keyOf: (row: ReportRow) => string): [string, Sum][] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const { messages, failed, counts } = sums.get(keyOf(row)) ?? { messages: 0, failed: 0, counts: false };
    const failing = row.result === "fail" ? row.messages : 0;
    sums.set(keyOf(row), {
      messages: messages + row.messages,
      failed: failed + failing,
      counts: counts || row.counts,
    });
  }
  return [...sums];
}

function ByDay({ rows }: { rows: readonly ReportRow[] }) {
  const days = sumsBy(rows, ({ day }) => day).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <Chart
      title="DMARC by day"
      times={days.map(([day]) => Date.parse(day))}
      days
      series={[
        {
          label: "Passed",
          color: "--good",
          values: days.map(([, { messages, failed }]) => messages - failed),
        },
        { label: "Failed", color: "--bad", values: days.map(([, { failed }]) => failed) },
      ]}
    />
  );
}

function Sources({ rows }: { rows: readonly ReportRow[] }) {
  const sources = sumsBy(rows, ({ source }) => source).sort(([, a], [, b]) => b.messages - a.messages);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
    <section class="scroll-x" tabIndex={0} aria-label="Sources">
      <table class="table">
        <caption class="hidden">Sources</caption>
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col" class="number">
              Messages
            </th>
            <th scope="col" class="number">
              Passed
            </th>
            <th scope="col">Reporters</th>
          </tr>
        </thead>
        <tbody>
          {sources.slice(0, MAX_SOURCES).map(([source, { messages, failed, counts }]) => (
            <tr key={source}>
              <th scope="row">{source}</th>
              <td class="number">{countText(messages)}</td>
              <td class="number">{percentText((messages - failed) / messages)}</td>
              <td>{counts ? "Proven" : "Not proven"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
