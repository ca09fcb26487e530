import { signal, useComputed, useSignal } from "@preact/signals";
import { EVENT_TYPES, liveState, useLive } from "../../api/live.ts";
import type { LiveEvent } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { Icon } from "../../components/icon.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search.tsx";
import { EventStatus } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { useKey } from "../../state/keyboard.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { projectId } from "../../state/session.ts";
import { detailsOf } from "../../words/answer.ts";
import { counted } from "../../words/amounts.ts";
import { eventWords } from "../../words/status.ts";

/** Events that are kept while the page is open; the oldest make room. */
const MAX_EVENTS = 1_000;

/** Groups of event types that a person wants to see together. */
const GROUPS: readonly { id: string; name: string; types: readonly string[] }[] = [
  { id: "all", name: "All", types: EVENT_TYPES },
  { id: "delivered", name: "Delivered", types: ["sent", "delivery"] },
  {
    id: "trouble",
    name: "Trouble",
    types: [
      ...["delivery_delayed", "bounce", "complaint", "rejected"],
      ...["rendering_failure", "failed", "inbound_rejected"],
    ],
  },
  { id: "engagement", name: "Opens and clicks", types: ["open", "click"] },
  { id: "received", name: "Received", types: ["inbound_received", "inbound_rejected"] },
];

/** Events stay while a person looks at another page. */
const kept = signal<{ project: string | null; events: readonly LiveEvent[] }>({ project: null, events: [] });

function keep(event: LiveEvent): void {
  const project = projectId.peek();
  const before = kept.peek().project === project ? kept.peek().events : [];
  kept.value = { project, events: [event, ...before].slice(0, MAX_EVENTS) };
}

/** A tail of all events, newest first. */
export function LivePage() {
  const paused = useSignal(false);
  const missed = useSignal<readonly LiveEvent[]>([]);
  const group = GROUPS.find(({ id }) => id === query.value.get("show")) ?? GROUPS[0];
  const text = (query.value.get("q") ?? "").toLowerCase();
  useLive((event) => {
    if (event === null) return;
    if (paused.value) missed.value = [event, ...missed.value].slice(0, MAX_EVENTS);
    else keep(event);
  });
  const toggle = () => {
    paused.value = !paused.value;
    if (paused.value) return;
    for (const event of missed.value.toReversed()) keep(event);
    missed.value = [];
  };
  useKey("p", toggle);
  const events = useComputed(() => (kept.value.project === projectId.value ? kept.value.events : []));
  const shown = events.value.filter(
    (event) => group?.types.includes(event.type) && (text === "" || textOf(event).includes(text)),
  );
  return (
    <Page
      title="Live"
      layout="panes"
      tools={
        <SearchField
          label="Filter events"
          placeholder="Filter by address, message or server"
          value={query.value.get("q") ?? ""}
          onSearch={(q) => navigate(urlWith({ q }), { replace: true })}
        />
      }
      actions={
        <button type="button" class="button" aria-pressed={paused.value} onClick={toggle}>
          <Icon name={paused.value ? "play" : "pause"} />
          {paused.value ? `Continue${missed.value.length > 0 ? ` (${missed.value.length})` : ""}` : "Pause"}
        </button>
      }
      bar={
        <div class="filters">
          <ul class="views" aria-label="Events">
            {GROUPS.map(({ id, name }) => (
              <li key={id}>
                <a
                  href={urlWith({ show: id === "all" ? null : id })}
                  aria-current={id === group?.id ? "true" : undefined}
                >
                  {name}
                </a>
              </li>
            ))}
          </ul>
          <LiveLine paused={paused.value} />
        </div>
      }
    >
      <div class="tail">
        {shown.length === 0 ? (
          <EmptyState
            action={
              <a class="button" href="/messages?compose=1">
                Send a message
              </a>
            }
            command="postrider tail"
          >
            {events.value.length === 0
              ? "Events appear here in the moment they are stored."
              : "None of the events so far fits the filter."}
          </EmptyState>
        ) : (
          <ol aria-label={counted(shown.length, "event")}>
            {shown.map((event) => (
              <EventRow key={event.id} event={event} />
            ))}
          </ol>
        )}
      </div>
    </Page>
  );
}

function LiveLine({ paused }: { paused: boolean }) {
  if (paused) return <span class="quiet">Paused. New events are kept.</span>;
  if (liveState.value === "live") return <span class="quiet">Live</span>;
  return (
    <span class="quiet">
      {liveState.value === "connecting" ? "Connecting…" : "The live stream is not available."}
    </span>
  );
}

function textOf(event: LiveEvent): string {
  return JSON.stringify(event).toLowerCase();
}

/** Facts of an event's details that fit on its line. */
const FACTS = ["mx", "tls", "reason", "diagnostic", "response", "url", "subject"] as const;

function EventRow({ event }: { event: LiveEvent }) {
  const details = detailsOf({ type: event.type, data: event });
  const from = details.from as { email?: string } | undefined;
  const facts = FACTS.map((name) => details[name]).filter((fact) => typeof fact === "string" && fact !== "");
  return (
    <li>
      <a
        class={`row columns-event tone-${eventWords(event.type).tone}`}
        href={`/messages/${event.messageId}`}
      >
        <LocalTime at={event.occurredAt} short />
        <EventStatus type={event.type} />
        <span class="cut">{event.email ?? from?.email ?? ""}</span>
        <span class="cut quiet">{facts.join(" · ")}</span>
        {event.testMode === true ? <span class="tag">test</span> : <span />}
      </a>
    </li>
  );
}
