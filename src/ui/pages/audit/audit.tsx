import { usePages } from "../../api/pages.ts";
import type { AuditEntry } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { Fact } from "../../components/fact.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { Views } from "../../components/views.tsx";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { actionText, actorText, targetText, valueText } from "./words.ts";

const PATH = "/audit";

const VIEWS = [
  { id: null, name: "All" },
  { id: "member", name: "People" },
  { id: "key", name: "API keys" },
  { id: "cli", name: "Command line" },
  { id: "service", name: "The service" },
] as const;

/** Who changed what, newest first, with the selected change next to it. */
export function AuditPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const filter = { actor: query.value.get("actor"), target: query.value.get("target") };
  const pages = usePages<AuditEntry>("/v1/audit-log", filter, ({ id }) => id);
  const close = () => navigate(urlWith({}, PATH));
  useKey("Escape", () => selected !== null && close());
  const found = pages.rows.value.find(({ id }) => id === selected);
  const { search } = place.value;
  return (
    <Page
      title="Audit log"
      layout="panes"
      tools={
        <SearchField
          label="Filter by what changed"
          placeholder="Id or kind, such as domain"
          value={filter.target ?? ""}
          onSearch={(target) => navigate(urlWith({ target }, PATH), { replace: true })}
        />
      }
      bar={<Views label="Made by" name="actor" path={PATH} views={VIEWS} />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Changes"
          pages={pages}
          columns="columns-templates"
          heads={["Change", "Of", "By", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => changedUrl(`${PATH}/${id}`, search, {})}
          cells={(entry) => <Cells entry={entry} />}
          empty={<EmptyState>No change fits.</EmptyState>}
        />
        {found !== undefined ? (
          <EntryDetail key={found.id} entry={found} onClose={close} />
        ) : selected !== null && pages.done.value ? (
          <EmptyState>There is no change with this id.</EmptyState>
        ) : null}
      </div>
    </Page>
  );
}

function Cells({ entry }: { entry: AuditEntry }) {
  return (
    <>
      <span class="cut strong">{actionText(entry)}</span>
      <span class="cut" dir="auto">
        {targetText(entry)}
      </span>
      <span class="cut quiet wide-only" dir="auto">
        {actorText(entry)}
      </span>
      <RelativeTime at={entry.at} />
    </>
  );
}

function EntryDetail({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const { id, at, target, changes, ip, requestId } = entry;
  const fields = Object.entries(changes);
  return (
    <Detail name="Change" id={id} busy={false} onClose={onClose}>
      <div class="detail-head">
        <h2>
          {actionText(entry)}: <bdi>{targetText(entry)}</bdi>
        </h2>
        <dl class="facts">
          <Fact name="By" value={actorText(entry)} />
          <Fact name="At" value={<LocalTime at={at} />} />
          {target.id === requestId ? null : (
            <Fact name="Id" value={<a href={urlWith({ target: target.id }, PATH)}>{target.id}</a>} />
          )}
          {ip === null ? null : <Fact name="From" value={ip} />}
          {requestId === null ? null : <Fact name="Request" value={requestId} />}
        </dl>
      </div>
      {fields.length === 0 ? null : (
        <table class="table changes">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {fields.map(([name, [before = null, after = null]]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td dir="auto">{valueText(before)}</td>
                <td dir="auto">{valueText(after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Detail>
  );
}
