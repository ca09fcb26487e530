import { useSignal } from "@preact/signals";
import type { Segment } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import { RecordForm } from "../../components/records/form.tsx";
import { type RecordFormProps, type RecordKind, RecordsPage } from "../../components/records/page.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { TextField } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useAudience } from "../../state/audience.ts";
import { type PageProps, query } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import {
  type Filter,
  filterInUrl,
  filterOf,
  filterSentence,
  type Audience,
  subjectsOf,
} from "../../words/filter.ts";
import { FilterBuilder, lacksValue, useFilterForm } from "./builder.tsx";
import { ContactCount, Sample, useCount } from "./count.tsx";

const SEGMENTS: RecordKind<Segment> = {
  title: "Segments",
  noun: "segment",
  path: "/segments",
  api: "/v1/segments",
  scope: "audience:write",
  heads: ["Contacts now", "Name", "Filter", "Age"],
  Cells,
  Form: SegmentForm,
  Body,
  loses: "The filter is deleted. Its contacts stay as they are.",
  about: "A segment is a filter of contacts with a name. Who passes it belongs to it at that moment.",
  first: { name: "Pro customers", filter: { property: "plan", op: "eq", value: "pro" } },
  hint: "Choose a segment to see its filter and who passes it.",
};

/** The segments of the project, and next to them the one that the path names. */
export function SegmentsPage({ params }: PageProps) {
  return <RecordsPage kind={SEGMENTS} selected={params.id ?? null} />;
}

/** The sentence of a filter. */
function FilterText({ filter }: { filter: Filter }) {
  const audience = useAudience().value.value;
  return <>{audience === null ? "" : filterSentence(filter, subjectsOf(audience))}</>;
}

function Cells({ record: { name, filter, createdAt } }: { record: Segment }) {
  return (
    <>
      <ContactCount filter={filter} />
      <span class="cut who-cell" dir="auto">
        {name}
      </span>
      <span class="cut subject-cell">
        <FilterText filter={filter} />
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function Body({ record: { id, name, filter, createdAt, updatedAt } }: { record: Segment }) {
  const { found, error } = useCount(filter);
  return (
    <>
      <div class="detail-head">
        <h2 dir="auto">{name}</h2>
        <p class="answer">
          <FilterText filter={filter} />
        </p>
        <dl class="facts">
          <Fact name="Created" value={<LocalTime at={createdAt} />} />
          {updatedAt === createdAt ? null : <Fact name="Changed" value={<LocalTime at={updatedAt} />} />}
        </dl>
      </div>
      <section class="detail-part form" aria-label="Contacts">
        <div class="part-head">
          <h3>Contacts now</h3>
          {can("contacts:read") ? (
            <a class="button small" href={`/contacts?segmentId=${encodeURIComponent(id)}`}>
              Open these contacts
            </a>
          ) : null}
        </div>
        <Problem error={error.value} />
        <p class="counted">{found.value === null ? "Counting…" : <Sample found={found.value} />}</p>
      </section>
    </>
  );
}

/** Makes a segment, of the filter in the URL if there is one, or changes one. */
function SegmentForm(props: RecordFormProps<Segment>) {
  const audience = useAudience();
  const known = audience.value.value;
  if (known === null) return <Problem error={audience.error.value} onRetry={audience.reload} />;
  return <Fields {...props} audience={known} />;
}

function Fields({ audience, ...props }: RecordFormProps<Segment> & { audience: Audience }) {
  const { record } = props;
  const subjects = subjectsOf(audience);
  const name = useSignal(record?.name ?? "");
  const form = useFilterForm(record?.filter ?? filterInUrl(query.peek().get("filter")), subjects);
  return (
    <RecordForm
      {...props}
      noun={SEGMENTS.noun}
      api={SEGMENTS.api}
      body={() => ({ name: name.value.trim(), filter: filterOf(form.value, subjects) })}
      size="wide"
      incomplete={form.value.rows.length === 0 || lacksValue(form.value)}
    >
      <TextField label="Name" name="name" value={name} autoFocus placeholder="Pro customers" />
      <FilterBuilder form={form} audience={audience} />
    </RecordForm>
  );
}
