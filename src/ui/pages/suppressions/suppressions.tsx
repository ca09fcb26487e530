import { usePages } from "../../api/pages.ts";
import type { Suppression } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import type { Bulk } from "../../components/picks.tsx";
import { List } from "../../components/list.tsx";
import { FileButtons, ImportDialog } from "../../components/files/lists-as-files.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { Views } from "../../components/views.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { codeContext } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { curlText } from "../../words/code.ts";
import { suppressionWords } from "../../words/suppression.ts";
import { SuppressionDetail } from "./detail.tsx";
import { useSignal } from "@preact/signals";
import { post, remove } from "../../api/client.ts";
import { now } from "../../browser/clock.ts";
import { TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { localField } from "../../words/time.ts";

const VIEWS = [
  { id: null, name: "All" },
  { id: "bounce", name: "Bounces" },
  { id: "complaint", name: "Complaints" },
  { id: "manual", name: "Added by hand" },
] as const;

/** The suppression list, with the selected address next to it. */
export function SuppressionsPage({ params }: PageProps) {
  const selected = params.email ?? null;
  const filter = { reason: query.value.get("reason"), q: query.value.get("q") };
  const pages = usePages<Suppression>("/v1/suppressions", filter, ({ id }) => id);
  const close = () => navigate(urlWith({}, "/suppressions"));
  const endAdd = () => navigate(urlWith({ add: null }), { replace: true });
  useKey("Escape", () => selected !== null && close());
  const search = place.value.search;
  return (
    <Page
      title="Suppressions"
      layout="panes"
      tools={
        <SearchField
          label="Search suppressions"
          placeholder="Search address"
          value={filter.q ?? ""}
          onSearch={(q) => navigate(urlWith({ q }, "/suppressions"), { replace: true })}
        />
      }
      actions={
        <>
          <FileButtons list="suppressions" filter={filter} />
          <CreateLink scope="suppressions:write" text="Suppress address" opens="add" plus />
        </>
      }
      bar={<Views label="Reason" name="reason" path="/suppressions" views={VIEWS} />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Suppressions"
          pages={pages}
          columns="columns-messages columns-people"
          heads={["Reason", "Address", "Note", "Age"]}
          selected={selected}
          keyOf={({ email }) => email}
          hrefOf={({ email }) => changedUrl(pathOf(email), search, { add: null })}
          cells={(entry) => <Cells entry={entry} />}
          bulk={suppressionBulk()}
          empty={<NoSuppressions filtered={filter.reason !== null || filter.q !== null} />}
        />
        {selected === null ? (
          <p class="split-hint quiet">Choose an address to see why it gets no mail.</p>
        ) : (
          <SuppressionDetail
            key={selected}
            email={selected}
            onClose={close}
            onLifted={(entry) => {
              pages.drop(entry);
              close();
            }}
          />
        )}
      </div>
      <ImportDialog list="suppressions" onImported={pages.refresh} />
      {opensForm("suppressions:write", "add") ? (
        <AddSuppression
          onClose={endAdd}
          onCreated={({ email }) => {
            pages.refresh();
            navigate(urlWith({ add: null }, pathOf(email)), { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

function suppressionBulk(): Bulk<Suppression> {
  return {
    nameOf: ({ email }) => email,
    actions: can("suppressions:write")
      ? [
          {
            verb: "Lift",
            done: "lifted",
            warning: "Mail to these addresses is sent again. Addresses that do not work bounce again.",
            leaves: true,
            run: ({ email }) => remove("/v1/suppressions", { email }),
          },
        ]
      : [],
    file: "suppressions",
    columns: {
      email: ({ email }) => email,
      reason: ({ reason }) => reason,
      note: ({ note }) => note ?? "",
      createdAt: ({ createdAt }) => createdAt,
      expiresAt: ({ expiresAt }) => expiresAt ?? "",
    },
  };
}

function pathOf(email: string): string {
  return `/suppressions/${encodeURIComponent(email)}`;
}

function Cells({ entry: { email, reason, note, expiresAt, createdAt } }: { entry: Suppression }) {
  const { word, tone, means } = suppressionWords(reason);
  return (
    <>
      <Dot tone={tone} word={word} title={means} />
      <span class="cut who-cell">{email}</span>
      <span class="cut subject-cell">
        {note ?? ""}
        {expiresAt === null ? null : (
          <span class="quiet">
            {note === null ? "Until " : " · until "}
            <LocalTime at={expiresAt} />
          </span>
        )}
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function NoSuppressions({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState
        action={
          <a class="button" href="/suppressions">
            Show all suppressions
          </a>
        }
      >
        No suppressed address fits this search and filter.
      </EmptyState>
    );
  const first = { email: "ben@example.com", note: "asked by phone" };
  return (
    <EmptyState
      action={
        can("suppressions:write") ? (
          <a class="button" href={urlWith({ add: "1" })}>
            Suppress an address
          </a>
        ) : undefined
      }
      command={curlText("POST", "/v1/suppressions", first, codeContext())}
    >
      Addresses that bounce or complain are added by themselves, and then get no more mail.
    </EmptyState>
  );
}

/** Suppresses an address. */
function AddSuppression({ onClose, onCreated }: MakerProps<Suppression>) {
  const email = useSignal("");
  const note = useSignal("");
  const until = useSignal("");
  const add = async () => {
    const body = {
      email: email.value.trim(),
      note: note.value.trim() === "" ? null : note.value.trim(),
      expiresAt: until.value === "" ? null : new Date(until.value).toISOString(),
    };
    onCreated(await post<Suppression>("/v1/suppressions", body));
  };
  return (
    <FormDialog title="Suppress an address" verb="Suppress address" onSubmit={add} onClose={onClose}>
      <TextField
        label="Address"
        name="email"
        value={email}
        autoFocus
        placeholder="ben@example.com"
        hint="If it is on the list already, its entry stays as it is."
      />
      <TextField
        label="Note"
        name="note"
        value={note}
        placeholder="asked by phone"
        hint="For you. Optional."
      />
      <TextField
        label="Until"
        name="expiresAt"
        type="datetime-local"
        min={localField(now())}
        value={until}
        hint="In your own time zone. Empty: until it is lifted."
      />
    </FormDialog>
  );
}
