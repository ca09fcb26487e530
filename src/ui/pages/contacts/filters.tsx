import { ViewLinks } from "../../components/views.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { Icon } from "../../controls/icon.tsx";
import { useAudience, useSegments } from "../../state/audience.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import {
  type Filter,
  filterInUrl,
  filterOf,
  filterSentence,
  type Audience,
  subjectsOf,
} from "../../words/filter.ts";
import { FilterBuilder, lacksValue, useFilterForm } from "../segments/builder.tsx";

const VIEWS = [
  { name: "All", query: { subscribed: null } },
  { name: "Subscribed", query: { subscribed: "true" } },
  { name: "Unsubscribed", query: { subscribed: "false" } },
];

/** The filters of the list: the subscription as links, and conditions in a window. */
export function Filters() {
  const filter = filterInUrl(query.value.get("filter"));
  const segmentId = query.value.get("segmentId") || null;
  const audience = useAudience().value.value;
  return (
    <>
      <div class="filters">
        <ViewLinks label="Subscription" path="/contacts" views={VIEWS} />
        {can("audience:read") ? (
          <>
            <span class="grow" />
            <a class="button small" href={urlWith({ edit: "filter" })}>
              Filter
            </a>
            <a class="button small" href="/properties">
              Properties
            </a>
          </>
        ) : null}
      </div>
      {filter === null || audience === null ? null : <Applied filter={filter} audience={audience} />}
      {segmentId === null ? null : <OfSegment id={segmentId} />}
      {query.value.get("edit") === "filter" && audience !== null && can("audience:read") ? (
        <EditFilter filter={filter} audience={audience} />
      ) : null}
    </>
  );
}

interface FilterProps {
  filter: Filter;
  audience: Audience;
}

/** The segment in effect, which a click takes away. */
function OfSegment({ id }: { id: string }) {
  const name = useSegments().value.value?.find((segment) => segment.id === id)?.name ?? id;
  return (
    <div class="filters">
      <a
        class="chip cut"
        href={urlWith({ segmentId: null }, "/contacts")}
        aria-label={`Remove the filter by the segment ${name}`}
      >
        <span class="cut">Segment: {name}</span>
        <Icon name="cross" />
      </a>
    </div>
  );
}

/** The filter in effect, which a click takes away or saves. */
function Applied({ filter, audience }: FilterProps) {
  const text = filterSentence(filter, subjectsOf(audience));
  return (
    <div class="filters">
      <a
        class="chip cut"
        title={text}
        href={urlWith({ filter: null }, "/contacts")}
        aria-label={`Remove the filter: ${text}`}
      >
        <span class="cut">{text}</span>
        <Icon name="cross" />
      </a>
      {can("audience:write") ? (
        <a
          class="button bare small"
          href={changedUrl("/segments", "", { create: "1", filter: JSON.stringify(filter) })}
        >
          Save as segment
        </a>
      ) : null}
    </div>
  );
}

/** Changes the conditions, and shows how many contacts pass them. */
function EditFilter({ filter, audience }: { filter: Filter | null; audience: Audience }) {
  const subjects = subjectsOf(audience);
  const form = useFilterForm(filter, subjects);
  const close = () => navigate(urlWith({ edit: null }), { replace: true });
  const show = async () => {
    const next = filterOf(form.value, subjects);
    const text = next === null ? null : JSON.stringify(next);
    navigate(urlWith({ edit: null, filter: text, segmentId: null }, "/contacts"), { replace: true });
  };
  return (
    <FormDialog
      title="Filter contacts"
      verb="Show contacts"
      size="wide"
      incomplete={lacksValue(form.value)}
      onSubmit={show}
      onClose={close}
    >
      <FilterBuilder form={form} audience={audience} />
    </FormDialog>
  );
}
