import { useLiveReload } from "../../api/live.ts";
import { usePages } from "../../api/pages.ts";
import type { MessageSummary } from "../../api/types.ts";
import { List } from "../../components/list.tsx";
import { Pinned } from "../../components/pinned.tsx";
import { Page } from "../../components/page.tsx";
import { Person } from "../../components/people/person.tsx";
import { Marked } from "../../components/marked.tsx";
import { WordSearch } from "../../components/word-search.tsx";
import { capturesTo, codeContext, firstSend } from "../../state/installation.ts";
import { Status } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { Compose } from "./compose.tsx";
import { messageBulk } from "./bulk.ts";
import { FILTER_NAMES } from "./filter-names.ts";
import { Filters } from "./filters.tsx";
import { MessageDetail, readMessage } from "./detail.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { curlText } from "../../words/code.ts";

/** Minimum time between reloads of the list while events arrive, ms. */
const REFRESH_MS = 150;

/** All messages with filters and search, and next to them the one that the path names. */
export function MessagesPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const filter = Object.fromEntries(FILTER_NAMES.map((name) => [name, query.value.get(name)]));
  const pages = usePages<MessageSummary>("/v1/emails", filter, ({ id }) => id);
  useLiveReload(pages.refresh, REFRESH_MS);
  const close = () => navigate(urlWith({ tab: null }, "/messages"));
  useKey("Escape", () => selected !== null && close());
  const filtered = Object.values(filter).some((value) => value !== null);
  const search = place.value.search;
  return (
    <Page
      title="Messages"
      layout="panes"
      tools={
        <WordSearch
          label="Search messages"
          names="recipient, sender, subject"
          onSearch={(searched) => navigate(urlWith({ ...searched }, "/messages"), { replace: true })}
        />
      }
      actions={<CreateLink scope="emails:send" text="Send" opens="compose" plus />}
      bar={<Filters />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Messages"
          pages={pages}
          columns="columns-messages"
          heads={["Status", "Address", "Subject", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => changedUrl(`/messages/${id}`, search, { compose: null })}
          cells={(message) => <Cells message={message} />}
          bulk={messageBulk()}
          pinned={
            selected === null ? null : (
              <Pinned
                key={selected}
                name={`message ${selected}`}
                load={() => readMessage(selected)}
                cells={(message) => <Cells message={message} />}
              />
            )
          }
          empty={<NoMessages filtered={filtered} />}
        />
        {selected === null ? (
          <p class="split-hint quiet">Choose a message to see what happened to it.</p>
        ) : (
          <MessageDetail key={selected} id={selected} onClose={close} />
        )}
      </div>
      {opensForm("emails:send", "compose") ? (
        <Compose onClose={() => navigate(urlWith({ compose: null }), { replace: true })} />
      ) : null}
    </Page>
  );
}

function Cells({
  message: {
    status,
    direction,
    awaitingApproval,
    from,
    fromName,
    to,
    toName,
    subject,
    createdAt,
    highlights = [],
  },
}: {
  message: MessageSummary;
}) {
  const inbound = direction === "inbound";
  return (
    <>
      <Status
        status={status}
        direction={direction}
        awaitingApproval={awaitingApproval}
        captured={capturesTo(to)}
      />
      <span class="who-cell with-person">
        <span class="way">{inbound ? "from" : "to"}</span>
        <Person name={inbound ? fromName : toName} email={inbound ? from : (to[0] ?? "")} />
        {!inbound && to.length > 1 ? <span>+{to.length - 1}</span> : null}
      </span>
      <span class="cut subject-cell" dir="auto">
        {subject === "" ? "(no subject)" : subject}
        <Marked highlights={highlights} />
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

/** The contents of an empty list of messages. */
function NoMessages({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState
        action={
          <a class="button" href="/messages">
            Show all messages
          </a>
        }
      >
        No message fits this search and filter.
      </EmptyState>
    );
  return (
    <EmptyState
      action={
        <a class="button primary" href={urlWith({ compose: "1" })}>
          Send a message
        </a>
      }
      command={curlText("POST", "/v1/emails", firstSend(), codeContext())}
    >
      Messages that you send and receive appear here as they happen.
    </EmptyState>
  );
}
