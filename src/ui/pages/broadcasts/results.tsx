import { useSignal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Broadcast, BroadcastResults } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import type { RecordProps } from "../../components/records/page.tsx";
import { Dot } from "../../components/status.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { LocalTime } from "../../components/time.tsx";
import { Advice } from "../../controls/advice.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useAudience, useSegments } from "../../state/audience.ts";
import { can } from "../../state/session.ts";
import { mailboxText } from "../../words/addresses.ts";
import { countText } from "../../words/amounts.ts";
import { AbResults } from "./ab-results.tsx";
import { intervalOf, OverTime } from "./over-time.tsx";
import { LetterPreview } from "./preview.tsx";
import { Recipients } from "./recipients.tsx";
import { BROADCAST_STATUS, resultsOf, stateText } from "./words.ts";

/** A broadcast that was sent: how far it has come, and what its readers did. The numbers move while it is open. */
export function Results({ record }: RecordProps<Broadcast>) {
  const { name, status, counts, problem } = record;
  const tab = useSignal("results");
  const done = counts.recipients + counts.skipped;
  return (
    <>
      <div class="detail-head">
        <h2 dir="auto">{name}</h2>
        <p class="answer" role="status">
          <Dot {...BROADCAST_STATUS[status]} />
          <span>{stateText(record)}</span>
        </p>
        {problem === null ? null : (
          <p class="field-error">
            <Advice text={problem.message} />
          </p>
        )}
        {counts.audience === null || status === "sent" || status === "canceled" ? null : (
          <div class="quota">
            <progress aria-label="Progress" max={Math.max(1, counts.audience)} value={done} />
          </div>
        )}
        <Facts record={record} />
      </div>
      <Tabs
        label="Parts of the broadcast"
        tabs={[
          { id: "results", label: "Results" },
          ...(can("contacts:read") ? [{ id: "recipients", label: "Recipients" }] : []),
          { id: "content", label: "Content" },
        ]}
        selected={tab.value}
        onSelect={(id) => (tab.value = id)}
      >
        {tab.value === "results" ? (
          <ResultsTab record={record} />
        ) : tab.value === "recipients" ? (
          <Recipients record={record} />
        ) : (
          <LetterPreview
            topicId={record.topicId}
            segmentId={record.segmentId}
            subject={record.subject ?? ""}
            otherSubject={record.abTest?.subject ?? ""}
            html={record.html ?? ""}
            text={record.text ?? ""}
          />
        )}
      </Tabs>
    </>
  );
}

/** The figures of its messages: in all, by subject and over time. */
function ResultsTab({ record }: { record: Broadcast }) {
  const { id, counts, abTest } = record;
  const interval = intervalOf(record);
  const results = useResource(`results ${id} ${interval}`, () =>
    get<BroadcastResults>(`/v1/broadcasts/${encodeURIComponent(id)}/results`, { interval }),
  );
  useReloadAfter(JSON.stringify([counts, abTest]), results.reload);
  const found = results.value.value;
  return (
    <>
      <Counters record={record} />
      <Problem error={results.error.value} onRetry={results.reload} />
      {found?.abTest == null ? null : <AbResults record={record} results={found.abTest} />}
      <OverTime data={found?.data ?? []} interval={interval} />
    </>
  );
}

function Facts({ record }: { record: Broadcast }) {
  const { topicId, segmentId, from, subject, ratePerHour, scheduledAt, startedAt, endedAt } = record;
  return (
    <dl class="facts">
      <Fact name="Subject" value={<bdi>{subject}</bdi>} />
      <Fact name="From" value={mailboxText(from)} />
      <Fact name="To" value={<Whom topicId={topicId} segmentId={segmentId} />} />
      {ratePerHour === null ? null : <Fact name="Rate" value={`At most ${countText(ratePerHour)} an hour`} />}
      {scheduledAt === null ? null : <Fact name="Scheduled" value={<LocalTime at={scheduledAt} />} />}
      {startedAt === null ? null : <Fact name="Started" value={<LocalTime at={startedAt} />} />}
      {endedAt === null ? null : <Fact name="Ended" value={<LocalTime at={endedAt} />} />}
    </dl>
  );
}

/** The readers of a broadcast: the contacts of a segment, or all, if they get the topic. */
function Whom({ topicId, segmentId }: Pick<Broadcast, "topicId" | "segmentId">) {
  const topic = useAudience().value.value?.topics.find(({ id }) => id === topicId);
  const segment = useSegments().value.value?.find(({ id }) => id === segmentId);
  return (
    <span>
      {segmentId === null ? (
        "All contacts"
      ) : (
        <a href={`/segments/${segmentId}`}>{segment?.name ?? segmentId}</a>
      )}{" "}
      who get <a href={`/topics/${topicId}`}>{topic?.name ?? topicId}</a>
    </span>
  );
}

function Counters({ record }: { record: Broadcast }) {
  return (
    <dl class="counters">
      {resultsOf(record).map(({ name, count, share }) => (
        <div key={name} class="counter">
          <dt>{name}</dt>
          <dd>
            <strong>{countText(count)}</strong>
            <span class="quiet">{share}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
