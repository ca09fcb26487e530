import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { usePages } from "../../api/pages.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Inbox, Thread } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { Icon } from "../../controls/icon.tsx";
import { List } from "../../components/list.tsx";
import { Pinned } from "../../components/pinned.tsx";
import { Page } from "../../components/page.tsx";
import { Problem } from "../../controls/problem.tsx";
import { WordSearch } from "../../components/word-search.tsx";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { codeContext, suggestedInbox } from "../../state/installation.ts";
import { can } from "../../state/session.ts";
import { readChanges } from "../../state/unread.ts";
import { curlText } from "../../words/code.ts";
import { threadBulk } from "./bulk.tsx";
import { Conversation, readThread } from "./conversation.tsx";
import { ChosenDraft, Drafts } from "./drafts.tsx";
import { InboxMenu } from "./inbox-menu.tsx";
import { NewInbox } from "./new-inbox.tsx";
import { useMailbox } from "./mailbox.ts";
import { Simulate } from "./simulate.tsx";
import { ThreadFilters } from "./thread-filters.tsx";
import { Cells } from "./thread-row.tsx";

/** Minimum time between reloads of the list while messages arrive, ms. */
const REFRESH_MS = 150;

const VIEWS = [
  { id: "open", name: "Open" },
  { id: "unread", name: "Unread" },
  { id: "archived", name: "Archived" },
  { id: "snoozed", name: "Snoozed" },
  { id: "spam", name: "Spam" },
  { id: "trash", name: "Trash" },
  { id: "drafts", name: "Drafts" },
] as const;

/** Views that are folders of the API. */
const FOLDERS: ReadonlySet<string> = new Set(["snoozed", "spam", "trash"]);

/** The order of threads: most recently active first, or the newest message with the words first. */
function orderOf({ lastMessageAt, id, matchedMessageId }: Thread): string {
  return matchedMessageId ?? `${lastMessageAt} ${id}`;
}

/** Threads of one inbox or all, and next to them the conversation that the path names. */
export function InboxesPage({ params }: PageProps) {
  const selected = params.threadId ?? null;
  const inboxId = params.inboxId ?? query.value.get("inbox");
  const view = query.value.get("view") ?? "open";
  const filter = {
    inboxId,
    q: query.value.get("q"),
    text: query.value.get("text"),
    unread: view === "unread" ? true : null,
    archived: view === "archived" ? true : null,
    folder: FOLDERS.has(view) ? view : null,
    label: query.value.get("label"),
    assignee: query.value.get("assignee"),
  };
  const inboxes = useResource("inboxes", () => get<{ data: Inbox[] }>("/v1/inboxes"));
  const pages = usePages<Thread>("/v1/threads", filter, orderOf);
  useLiveReload(pages.refresh, REFRESH_MS);
  const mailbox = useMailbox().value.value;
  useReloadAfter(readChanges.value, pages.refresh);
  const list = inboxes.value.value?.data ?? null;
  const chosen = list?.find(({ id }) => id === inboxId);
  const listPath = inboxId === null ? "/inboxes" : `/inboxes/${inboxId}`;
  const close = () => navigate(changedUrl(listPath, place.value.search, { inbox: null }));
  useKey("Escape", () => selected !== null && close());
  const views = useRef<HTMLUListElement>(null);
  // On a phone they are wider than the window.
  useLayoutEffect(() => {
    views.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [view]);
  const search = place.value.search;
  const showCreated = (inbox: Inbox) => {
    inboxes.set({ data: [...(list ?? []), inbox] });
    inboxes.reload();
  };
  return (
    <Page
      title="Inboxes"
      layout="panes"
      tools={
        <WordSearch
          label="Search threads"
          names="subject, person, preview"
          onSearch={(searched) =>
            navigate(changedUrl(listPath, search, { ...searched, inbox: null }), { replace: true })
          }
        />
      }
      actions={<InboxActions inboxes={list} inboxId={inboxId} onCreated={showCreated} />}
      bar={
        <div class="filters">
          <InboxChoice inboxes={list ?? []} inboxId={inboxId} />
          <ul class="views" aria-label="Threads" ref={views}>
            {VIEWS.filter(({ id }) => id !== "drafts" || can("drafts:write")).map(({ id, name }) => (
              <li key={id}>
                <a
                  href={changedUrl(listPath, search, { view: id === "open" ? null : id, inbox: null })}
                  aria-current={id === view ? "true" : undefined}
                >
                  {name}
                </a>
              </li>
            ))}
          </ul>
          {view === "drafts" ? null : <ThreadFilters mailbox={mailbox} listPath={listPath} />}
          {list === null || (inboxId !== null && chosen === undefined) ? null : (
            <InboxMenu key={chosen?.id} inbox={chosen ?? null} onChanged={inboxes.reload} />
          )}
        </div>
      }
    >
      <Problem error={inboxes.error.value} onRetry={inboxes.reload} />
      <div class={selected === null && !query.value.has("draft") ? "split" : "split open"}>
        {view === "drafts" ? (
          <Drafts inboxId={inboxId} selected={selected} />
        ) : (
          <List
            label="Threads"
            pages={pages}
            columns="columns-threads"
            heads={["", "With", "Subject", "", "", "Age"]}
            selected={selected}
            keyOf={({ id }) => id}
            hrefOf={({ id }) =>
              changedUrl(`/threads/${id}`, search, {
                inbox: inboxId,
                simulate: null,
                create: null,
                senders: null,
              })
            }
            cells={(thread) => <Cells thread={thread} mailbox={mailbox} />}
            bulk={threadBulk(view, mailbox)}
            pinned={
              selected === null ? null : (
                <Pinned
                  key={selected}
                  name={`thread ${selected}`}
                  load={() => readThread(selected)}
                  cells={(thread) => <Cells thread={thread} mailbox={mailbox} />}
                />
              )
            }
            empty={<NoThreads inboxes={list} isFiltered={isFiltered(view)} />}
          />
        )}
        {selected === null ? (
          view === "drafts" ? (
            <ChosenDraft />
          ) : (
            <p class="split-hint quiet">Choose a thread to read and answer it.</p>
          )
        ) : (
          <Conversation
            key={selected}
            id={selected}
            inboxes={list ?? []}
            onClose={close}
            onLeave={pages.drop}
          />
        )}
      </div>
    </Page>
  );
}

function InboxChoice({ inboxes, inboxId }: { inboxes: readonly Inbox[]; inboxId: string | null }) {
  return (
    <select
      class="inbox-choice"
      aria-label="Inbox"
      value={inboxId ?? ""}
      onChange={(event) => {
        const id = event.currentTarget.value;
        navigate(changedUrl(id === "" ? "/inboxes" : `/inboxes/${id}`, place.value.search, { inbox: null }));
      }}
    >
      <option value="">All inboxes</option>
      {inboxes.map(({ id, address }) => (
        <option key={id} value={id}>
          {address}
        </option>
      ))}
    </select>
  );
}

interface ActionsProps {
  /** Null until they are read. */
  inboxes: readonly Inbox[] | null;
  inboxId: string | null;
  onCreated: (inbox: Inbox) => void;
}

function InboxActions({ inboxes, inboxId, onCreated }: ActionsProps) {
  const created = useSignal<string | null>(null);
  if (!can("inboxes:write")) return null;
  const closeCreate = () => navigate(urlWith({ create: null }), { replace: true });
  const simulates = query.value.has("simulate");
  return (
    <>
      <a class="button" href={urlWith({ simulate: "1" })}>
        Simulate
      </a>
      <a class="button primary" href={urlWith({ create: "1" })}>
        <Icon name="plus" />
        Create inbox
      </a>
      {query.value.has("create") || (simulates && inboxes?.length === 0) ? (
        <NewInbox
          onClose={simulates ? () => navigate(urlWith({ simulate: null }), { replace: true }) : closeCreate}
          onCreated={(inbox) => {
            created.value = inbox.id;
            onCreated(inbox);
            if (!simulates) closeCreate();
          }}
        />
      ) : null}
      {simulates && inboxes !== null && inboxes.length > 0 ? (
        <Simulate
          inboxes={inboxes}
          inboxId={created.value ?? inboxId ?? inboxes[0]?.id ?? ""}
          onClose={() => navigate(urlWith({ simulate: null }), { replace: true })}
        />
      ) : null}
    </>
  );
}

/** Returns whether a view or a filter may hide threads. */
function isFiltered(view: string): boolean {
  return view !== "open" || ["q", "text", "label", "assignee"].some((name) => query.value.has(name));
}

function NoThreads({ inboxes, isFiltered }: { inboxes: readonly Inbox[] | null; isFiltered: boolean }) {
  if (inboxes === null) return null;
  if (inboxes.length === 0)
    return (
      <EmptyState
        action={
          <a class="button primary" href={urlWith({ create: "1" })}>
            Create an inbox
          </a>
        }
        command={curlText("POST", "/v1/inboxes", { address: suggestedInbox() }, codeContext())}
      >
        An inbox receives mail at an address of your domain and keeps it in threads.
      </EmptyState>
    );
  if (isFiltered) return <EmptyState>No thread fits this view.</EmptyState>;
  return (
    <EmptyState
      action={
        <a class="button" href={urlWith({ simulate: "1" })}>
          Simulate a message
        </a>
      }
      command={curlText(
        "POST",
        "/v1/inbound/simulate",
        { to: inboxes[0]?.address, text: "Hello" },
        codeContext(),
      )}
    >
      Mail to {inboxes[0]?.address ?? "this inbox"} appears here in the moment it arrives.
    </EmptyState>
  );
}
