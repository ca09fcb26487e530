import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { MessageStatus, MessageSummary, Page } from "../../api/types.ts";
import { Problem } from "../../controls/problem.tsx";
import { Status } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";

const TROUBLES: readonly MessageStatus[] = [
  "bounced",
  "complained",
  "failed",
  "rejected",
  "rendering_failure",
  "delivery_delayed",
];
/** Events that bring trouble, or end it. */
const EVENTS: ReadonlySet<string> = new Set([
  "bounce",
  "complaint",
  "failed",
  "rejected",
  "rendering_failure",
  "delivery_delayed",
  "delivery",
  "sent",
]);
/** Minimum time between reloads of the list while events arrive, ms. */
const REFRESH_MS = 3_000;
const SHOWN = 6;

async function readTrouble(): Promise<MessageSummary[]> {
  const pages = await Promise.all(
    TROUBLES.map((status) => get<Page<MessageSummary>>("/v1/emails", { status, limit: SHOWN })),
  );
  return pages
    .flatMap(({ data }) => data)
    .toSorted((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, SHOWN);
}

/** The newest messages that did not arrive. */
export function Trouble() {
  const trouble = useResource("trouble", readTrouble);
  useLiveReload(trouble.reload, REFRESH_MS, ({ type }) => EVENTS.has(type));
  const messages = trouble.value.value;
  return (
    <section class="panel" aria-label="Recent trouble">
      <header class="panel-head">
        <h2>Recent trouble</h2>
        <a href="/messages?status=bounced">All bounces</a>
      </header>
      <Problem error={trouble.error.value} onRetry={trouble.reload} />
      {messages === null ? null : messages.length === 0 ? (
        <p class="quiet">Every message so far has arrived.</p>
      ) : (
        <ul class="plain-rows">
          {messages.map(({ id, status, to, subject, createdAt, direction }) => (
            <li key={id}>
              <a class="row columns-trouble" href={`/messages/${id}`}>
                <Status status={status} direction={direction} />
                <span class="cut">{to.join(", ")}</span>
                <span class="cut quiet" dir="auto">
                  {subject}
                </span>
                <RelativeTime at={createdAt} />
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
