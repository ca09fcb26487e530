import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Broadcast, BroadcastSummary } from "../../api/types.ts";
import { type RecordFormProps, type RecordKind, RecordsPage } from "../../components/records/page.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { SelectField, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { useAudience } from "../../state/audience.ts";
import { onboardingSender, useDomains } from "../../state/installation.ts";
import type { PageProps } from "../../state/router.ts";
import { Actions } from "./actions.tsx";
import { DraftPage } from "./draft.tsx";
import { Results } from "./results.tsx";
import { counted } from "../../words/amounts.ts";
import { BROADCAST_STATUS, isMoving, progressText, shortResults } from "./words.ts";

/** The list has summaries, the detail whole broadcasts. */
const BROADCASTS: RecordKind<Broadcast> = {
  title: "Broadcasts",
  noun: "broadcast",
  path: "/broadcasts",
  api: "/v1/broadcasts",
  scope: "audience:write",
  heads: ["State", "Name", "Subject and results", "Age"],
  Cells,
  Form: NewBroadcast,
  isFixed: true,
  mayGo: ({ status, counts }) => counts.recipients === 0 && status !== "sending" && status !== "paused",
  Actions,
  moves: isMoving,
  Body: Results,
  loses: "Its content is deleted. It was sent to no contact.",
  about:
    "A broadcast is a letter to many contacts. It leaves after all other mail, and each reader can leave it with one click.",
  first: {
    name: "May letter",
    topicId: "top_…",
    from: "Acme <news@example.com>",
    subject: "Hello {{ contact.firstName }}",
    text: "News. {{ unsubscribeUrl }}",
  },
  hint: "Choose a broadcast to see its results, or to go on writing it.",
};

/** The broadcasts of the project, and next to them the one that the path names. A draft has the page to itself. */
export function BroadcastsPage({ params }: PageProps) {
  const id = params.id ?? null;
  const broadcast = useResource(`broadcast ${id}`, async () =>
    id === null ? null : get<Broadcast>(`/v1/broadcasts/${encodeURIComponent(id)}`),
  );
  const found = broadcast.value.value;
  if (found?.status === "draft") return <DraftPage key={id} broadcast={found} onChanged={broadcast.set} />;
  return <RecordsPage kind={BROADCASTS} selected={id} />;
}

function Cells({ record }: { record: BroadcastSummary }) {
  const { name, status, createdAt } = record;
  return (
    <>
      <Dot {...BROADCAST_STATUS[status]} />
      <span class="cut who-cell" dir="auto">
        {name}
      </span>
      <span class="cut subject-cell" dir="auto">
        <About record={record} />
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

/** The facts that matter about a broadcast in its status. */
function About({ record }: { record: BroadcastSummary }) {
  const { status, subject, scheduledAt } = record;
  if (status === "draft") return <span dir="auto">{subject}</span>;
  if (status === "scheduled" && scheduledAt !== null)
    return (
      <>
        For <LocalTime at={scheduledAt} />
      </>
    );
  const results = shortResults(record);
  const done = status === "sent" ? counted(record.counts.recipients, "message") : progressText(record);
  return <>{results === "" ? done : `${done} · ${results}`}</>;
}

/** Makes a draft with what a broadcast must have. The editor has the rest. */
function NewBroadcast({ onClose, onSaved }: RecordFormProps<Broadcast>) {
  const name = useSignal("");
  const topicId = useSignal("");
  const from = useSignal("");
  const topics = useAudience().value.value?.topics ?? [];
  const domains = useDomains().value.value;
  useEffect(() => {
    if (topicId.peek() === "" && topics[0] !== undefined) topicId.value = topics[0].id;
  }, [topics.length]);
  useEffect(() => {
    if (domains === null || from.peek() !== "") return;
    const verified = domains.find(({ status }) => status === "verified");
    from.value = verified === undefined ? onboardingSender() : `news@${verified.domain}`;
  }, [domains]);
  const create = async () => {
    const body = { name: name.value.trim(), topicId: topicId.value, from: from.value.trim() };
    onSaved(await post<Broadcast>("/v1/broadcasts", body));
  };
  return (
    <FormDialog
      title="Create a broadcast"
      verb="Create broadcast"
      incomplete={topics.length === 0}
      onSubmit={create}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        value={name}
        autoFocus
        placeholder="May letter"
        hint="For you. Readers see the subject."
      />
      {topics.length === 0 ? (
        <p>
          A broadcast belongs to a topic, which its readers can leave.{" "}
          <a href="/topics?create=1">Create a topic</a>
        </p>
      ) : (
        <SelectField
          label="Topic"
          name="topicId"
          value={topicId}
          options={topics.map((topic) => ({ value: topic.id, text: topic.name }))}
          hint="Readers leave it by the unsubscribe link."
        />
      )}
      <TextField label="From" name="from" value={from} placeholder="Acme <news@example.com>" />
    </FormDialog>
  );
}
