import { patch } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { type Pages, usePages } from "../../api/pages.ts";
import type { Notice } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { Fact } from "../../components/fact.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { ViewLinks } from "../../components/views.tsx";
import { Problem } from "../../controls/problem.tsx";
import { type Task, useTask } from "../../controls/task.ts";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { accountWide, can, projects } from "../../state/session.ts";
import { seenChanges } from "../../state/unread.ts";
import { kindText } from "../../words/notices.ts";
import { NoticeStatus } from "./status.tsx";

const PATH = "/notices";
/** Minimum time between reloads of the list while events arrive, ms. */
const REFRESH_MS = 5_000;

const VIEWS = [
  { name: "All", query: { seen: null, ended: null } },
  { name: "Unseen", query: { seen: "false", ended: null } },
  { name: "Open", query: { seen: null, ended: "false" } },
] as const;

/** Notices, newest first, with the selected notice next to it. */
export function NoticesPage({ params, mayVisit }: PageProps) {
  const selected = params.id ?? null;
  const filter = { seen: query.value.get("seen"), ended: query.value.get("ended") };
  const pages = usePages<Notice>("/v1/notices", filter, ({ id }) => id);
  useLiveReload(pages.refresh, REFRESH_MS);
  const task = useTask();
  const close = () => navigate(urlWith({}, PATH));
  useKey("Escape", () => selected !== null && close());
  const mark = (notices: readonly Notice[], seen: boolean) =>
    task.run(async () => {
      for (const { id } of notices) await patch<Notice>(`/v1/notices/${id}`, { seen }, { account: true });
      if (filter.seen === "false" && selected !== null) close();
      pages.refresh();
      seenChanges.value++;
    });
  const found = pages.rows.value.find(({ id }) => id === selected);
  const { search } = place.value;
  const choose = (
    <a class="button" href="/settings?view=notices">
      Choose what is sent
    </a>
  );
  return (
    <Page
      title="Notices"
      layout="panes"
      actions={
        <>
          {accountWide.value && can("senders:read") && mayVisit("/settings") ? choose : null}
          <MarkAll pages={pages} task={task} onMark={(notices) => void mark(notices, true)} />
        </>
      }
      bar={
        <div class="filters">
          <ViewLinks label="Show" path={PATH} views={VIEWS} />
        </div>
      }
    >
      <Problem error={task.error.value} />
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Notices"
          pages={pages}
          columns="columns-notices"
          heads={["", "State", "What", "Project", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => changedUrl(`${PATH}/${id}`, search, {})}
          cells={(notice) => <Cells notice={notice} />}
          empty={<EmptyState>Nothing needs you.</EmptyState>}
        />
        {found !== undefined ? (
          <NoticeDetail
            key={found.id}
            notice={found}
            mayVisit={mayVisit}
            task={task}
            onMark={(seen) => void mark([found], seen)}
            onClose={close}
          />
        ) : selected !== null && pages.done.value ? (
          <EmptyState>There is no notice with this id.</EmptyState>
        ) : null}
      </div>
    </Page>
  );
}

/** Returns whether someone still has to look at it. One that is over needs no look, unless it happened once. */
function needsLook({ at, seenAt, endedAt }: Notice): boolean {
  return seenAt === null && (endedAt === null || endedAt === at);
}

interface MarkAllProps {
  pages: Pages<Notice>;
  task: Task;
  onMark: (notices: readonly Notice[]) => void;
}

/** Marks the notices of the list that were read so far. */
function MarkAll({ pages, task, onMark }: MarkAllProps) {
  const unseen = pages.rows.value.filter(needsLook);
  if (unseen.length === 0) return null;
  return (
    <button type="button" class="button" disabled={task.busy.value} onClick={() => onMark(unseen)}>
      Mark all as seen
    </button>
  );
}

/** The project of a notice; empty if it concerns the account, or the reader has that one alone. */
function projectText({ senderId }: Notice): string {
  if (senderId === null || projects.value.length <= 1) return "";
  return projects.value.find(({ id }) => id === senderId)?.name ?? senderId;
}

function Cells({ notice }: { notice: Notice }) {
  const isNew = needsLook(notice);
  return (
    <>
      <span class={isNew ? "read-mark unread-mark" : "read-mark"}>
        <span class="hidden">{isNew ? "Unseen" : ""}</span>
      </span>
      <NoticeStatus notice={notice} />
      <span class={isNew ? "cut strong" : "cut"} title={notice.message}>
        {notice.message}
      </span>
      <span class="cut quiet wide-only">{projectText(notice)}</span>
      <RelativeTime at={notice.at} />
    </>
  );
}

interface DetailProps {
  notice: Notice;
  mayVisit: PageProps["mayVisit"];
  task: Task;
  onMark: (seen: boolean) => void;
  onClose: () => void;
}

function NoticeDetail({ notice, mayVisit, task, onMark, onClose }: DetailProps) {
  const { id, at, kind, subject, message, fix, seenAt, endedAt } = notice;
  const project = projectText(notice);
  return (
    <Detail
      name="Notice"
      id={id}
      busy={task.busy.value}
      onClose={onClose}
      actions={
        <button
          type="button"
          class="button small"
          disabled={task.busy.value}
          onClick={() => onMark(seenAt === null)}
        >
          {seenAt === null ? "Mark as seen" : "Mark as unseen"}
        </button>
      }
    >
      <div class="detail-head">
        <h2>
          {kindText(kind)}: <bdi>{subject}</bdi>
        </h2>
        <p class="answer" role="status">
          <NoticeStatus notice={notice} />
          <span>{message}</span>
        </p>
        {mayVisit(fix.path) ? (
          <p>
            <a class="button primary" href={fix.path}>
              {fix.label}
            </a>
          </p>
        ) : endedAt === null ? (
          <p class="quiet">Someone with more rights in this account can fix it.</p>
        ) : null}
        <dl class="facts">
          <Fact name="Since" value={<LocalTime at={at} />} />
          {endedAt === null ? null : <Fact name="Over" value={<LocalTime at={endedAt} />} />}
          {seenAt === null ? null : <Fact name="Seen" value={<LocalTime at={seenAt} />} />}
          {project === "" ? null : <Fact name="Project" value={project} />}
        </dl>
      </div>
    </Detail>
  );
}
