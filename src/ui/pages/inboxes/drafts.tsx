import { usePages } from "../../api/pages.ts";
import type { DraftSummary } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { changedUrl } from "../../state/paths.ts";
import { navigate, place, query, urlWith } from "../../state/router.ts";
import { authorName, isMe } from "../../state/reader.ts";
import { Proposal, useDraftReload } from "./writing/proposals.tsx";

/** All drafts of an inbox or the project: what programs propose, and what people have not sent yet. */
export function Drafts({ inboxId, selected }: { inboxId: string | null; selected: string | null }) {
  const pages = usePages<DraftSummary>("/v1/drafts", { inboxId }, ({ id }) => id);
  useDraftReload(pages.refresh);
  const { search } = place.value;
  const chosen = query.value.get("draft");
  return (
    <List
      label="Drafts"
      pages={pages}
      columns="columns-threads"
      heads={["", "By", "Subject", "", "", "Age"]}
      selected={
        pages.rows.value.find(
          ({ id, threadId }) => id === chosen || (threadId !== null && threadId === selected),
        )?.id ?? null
      }
      keyOf={({ id }) => id}
      hrefOf={({ id, threadId }) =>
        threadId === null
          ? urlWith({ draft: id })
          : changedUrl(`/threads/${threadId}`, search, { inbox: inboxId, draft: null })
      }
      cells={(draft) => <Cells draft={draft} />}
      empty={<EmptyState>Replies that are not sent yet appear here, and what programs propose.</EmptyState>}
    />
  );
}

function Cells({ draft: { author, subject, preview, to, updatedAt } }: { draft: DraftSummary }) {
  return (
    <>
      <span />
      <span class="cut who-cell">{isMe(author.id) ? "You" : authorName(author)}</span>
      <span class="cut subject-cell" dir="auto">
        {author.type === "key" ? <span class="tag">Proposal</span> : null}
        <span>{subject === "" ? "(no subject)" : subject}</span>
        <span class="quiet"> {preview}</span>
      </span>
      <span class="cut assignee-cell">{to[0] ?? ""}</span>
      <span />
      <RelativeTime at={updatedAt} />
    </>
  );
}

/** The draft of the URL, which begins a conversation. Those of a conversation are shown in it. */
export function ChosenDraft() {
  const id = query.value.get("draft");
  const close = () => navigate(urlWith({ draft: null }));
  if (id === null) return <p class="split-hint quiet">Choose a draft to read and send it.</p>;
  return (
    <Detail name="Draft" id={id} busy={false} onClose={close}>
      <Proposal key={id} id={id} onDone={close} />
    </Detail>
  );
}
