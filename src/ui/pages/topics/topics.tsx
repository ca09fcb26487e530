import { useSignal } from "@preact/signals";
import type { Topic } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import { RecordForm } from "../../components/records/form.tsx";
import { type RecordFormProps, type RecordKind, RecordsPage } from "../../components/records/page.tsx";
import { PagePreview } from "../../components/preview.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { CheckBox, SelectField, TextField } from "../../controls/form.tsx";
import type { PageProps } from "../../state/router.ts";
import { PAGE_LANGUAGES } from "../../api/server-lists.ts";
import { can } from "../../state/session.ts";

const TOPICS: RecordKind<Topic> = {
  title: "Topics",
  noun: "topic",
  path: "/topics",
  api: "/v1/topics",
  scope: "audience:write",
  heads: ["Unless they choose", "Name", "Description", "Age"],
  Cells,
  Form: TopicForm,
  Body,
  loses: "What contacts have chosen about it is deleted. Its messages that have not left yet are rejected.",
  about: "A topic is what a reader can leave without leaving the rest, such as your monthly letter.",
  first: { name: "Product news", description: "Once a month" },
  hint: "Choose a topic to see and change what readers see of it.",
};

/** The topics of the project, and next to them the one that the path names. */
export function TopicsPage({ params }: PageProps) {
  return <RecordsPage kind={TOPICS} selected={params.id ?? null} />;
}

function DefaultDot({ topic: { defaultSubscribed } }: { topic: Topic }) {
  return (
    <Dot
      tone={defaultSubscribed ? "good" : "quiet"}
      word={defaultSubscribed ? "Subscribed" : "Not subscribed"}
    />
  );
}

function Cells({ record }: { record: Topic }) {
  const { name, description, visible, createdAt } = record;
  return (
    <>
      <DefaultDot topic={record} />
      <span class="cut who-cell" dir="auto">
        {name}
      </span>
      <span class="cut subject-cell" dir="auto">
        {description}
        {visible ? null : <span class="tag">hidden</span>}
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function Body({ record }: { record: Topic }) {
  const { id, name, defaultSubscribed, visible, doubleOptIn, createdAt, updatedAt } = record;
  const those = encodeURIComponent(JSON.stringify({ all: [{ topic: id, op: "eq", value: "subscribed" }] }));
  return (
    <>
      <div class="detail-head">
        <h2 dir="auto">{name}</h2>
        <p class="answer">
          <DefaultDot topic={record} />
          <span>
            {defaultSubscribed
              ? "Contacts get it until they leave it."
              : doubleOptIn
                ? "Contacts get it once they have used the link that is mailed to them."
                : "Contacts get it only after they have joined it."}
          </span>
        </p>
        <dl class="facts">
          <Fact name="Created" value={<LocalTime at={createdAt} />} />
          {updatedAt === createdAt ? null : <Fact name="Changed" value={<LocalTime at={updatedAt} />} />}
          {can("contacts:read") ? (
            <Fact name="Contacts" value={<a href={`/contacts?filter=${those}`}>Contacts who get it</a>} />
          ) : null}
        </dl>
      </div>
      <section class="detail-part form" aria-label="What readers see">
        <h3>What readers see</h3>
        <p class="quiet">
          {visible
            ? "This page is behind the unsubscribe link of each message, in the reader's language."
            : "This page is behind the unsubscribe link of the topic's own messages. That of other messages leaves the topic out."}{" "}
          The template with the slug <code>unsubscribe-page</code> changes its words.
        </p>
        <ReaderPage key={updatedAt} topic={record} />
      </section>
    </>
  );
}

/** The page behind unsubscribe links as a reader sees it who has not chosen. Its buttons do nothing here. */
function ReaderPage({ topic: { id, name } }: { topic: Topic }) {
  const language = useSignal("en");
  const path = `/ui/topics/${encodeURIComponent(id)}/${language.value}`;
  return (
    <>
      <SelectField
        label="Language"
        name="language"
        value={language}
        options={Object.entries(PAGE_LANGUAGES).map(([value, text]) => ({ value, text }))}
      />
      <PagePreview key={path} small path={path} title={`The page of ${name}`} />
    </>
  );
}

function TopicForm(props: RecordFormProps<Topic>) {
  const { record } = props;
  const name = useSignal(record?.name ?? "");
  const description = useSignal(record?.description ?? "");
  const defaultSubscribed = useSignal(record?.defaultSubscribed ?? true);
  const visible = useSignal(record?.visible ?? true);
  const doubleOptIn = useSignal(record?.doubleOptIn ?? false);
  const body = () => ({
    name: name.value.trim(),
    description: description.value.trim(),
    defaultSubscribed: defaultSubscribed.value && !doubleOptIn.value,
    visible: visible.value,
    doubleOptIn: doubleOptIn.value,
  });
  return (
    <RecordForm {...props} noun={TOPICS.noun} api={TOPICS.api} body={body}>
      <TextField
        label="Name"
        name="name"
        value={name}
        autoFocus
        placeholder="Product news"
        hint="As readers see it."
      />
      <TextField
        label="Description"
        name="description"
        value={description}
        placeholder="Once a month"
        hint="Below the name. Optional."
      />
      <CheckBox label="People join only by a mailed link (double opt-in)" checked={doubleOptIn} />
      {doubleOptIn.value ? null : (
        <CheckBox label="Contacts who have not chosen get it" checked={defaultSubscribed} />
      )}
      <CheckBox label="The page of unsubscribe links shows it" checked={visible} />
    </RecordForm>
  );
}
