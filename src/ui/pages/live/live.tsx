import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { liveState } from "../../api/live.ts";
import { followEachEvent } from "../../api/stream.ts";
import { EVENT_TYPES } from "../../api/server-lists.ts";
import type { LiveEvent } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { now } from "../../browser/clock.ts";
import { Icon } from "../../controls/icon.tsx";
import { ListHeads } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { Rows } from "../../components/rows.tsx";
import { SearchField } from "../../components/search.tsx";
import { Dot, EventStatus } from "../../components/status.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { codeContext, shownName } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { tail } from "../../state/tail.ts";
import { DAY } from "../../words/time.ts";
import { detailsOf, isCaptured } from "../../words/answer.ts";
import { curlText } from "../../words/code.ts";

/** Event types that a person wants to see together. */
interface Group {
  id: string;
  name: string;
  types: readonly string[];
}

const GROUPS: readonly [Group, ...Group[]] = [
  { id: "all", name: "All", types: EVENT_TYPES },
  { id: "delivered", name: "Delivered", types: ["sent", "delivery"] },
  {
    id: "trouble",
    name: "Trouble",
    types: [
      "delivery_delayed",
      "bounce",
      "complaint",
      "rejected",
      "rendering_failure",
      "failed",
      "inbound_rejected",
    ],
  },
  { id: "engagement", name: "Readers", types: ["open", "click", "unsubscribed"] },
  { id: "received", name: "Received", types: ["inbound_received", "inbound_rejected"] },
];

/** Below this scroll position the tail counts as being at its top. */
const TOP_PX = 8;

/** A tail of all events, newest first. */
export function LivePage() {
  /** The events that are shown while the tail is paused. */
  const frozen = useSignal<readonly LiveEvent[] | null>(null);
  /** True if scrolling has paused it, and not the person. */
  const byScroll = useRef(false);
  const scroller = useRef<HTMLDivElement>(null);
  const group = GROUPS.find(({ id }) => id === query.value.get("show")) ?? GROUPS[0];
  const text = (query.value.get("q") ?? "").toLowerCase();
  const toggle = () => {
    frozen.value = frozen.value === null ? tail.value : null;
    byScroll.current = false;
    if (frozen.value === null) scroller.current?.scrollTo({ top: 0 });
  };
  const onView = (top: number) => {
    const scrolled = top > TOP_PX;
    if (scrolled && frozen.value === null) {
      frozen.value = tail.value;
      byScroll.current = true;
    } else if (!scrolled && byScroll.current) toggle();
  };
  useKey("p", toggle);
  useEffect(followEachEvent, []);
  const paused = frozen.value !== null;
  const events = frozen.value ?? tail.value;
  const missed = paused ? missedSince(events[0]) : 0;
  const shown = events.filter(
    (event) => group.types.includes(event.type) && (text === "" || textOf(event).includes(text)),
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
        <button type="button" class="button" aria-pressed={paused} onClick={toggle}>
          <Icon name={paused ? "play" : "pause"} />
          {paused ? `Continue${missed > 0 ? ` (${missed})` : ""}` : "Pause"}
        </button>
      }
      bar={
        <div class="filters">
          <ul class="views" aria-label="Events">
            {GROUPS.map(({ id, name }) => (
              <li key={id}>
                <a
                  href={urlWith({ show: id === "all" ? null : id })}
                  aria-current={id === group.id ? "true" : undefined}
                >
                  {shownName(name)}
                </a>
              </li>
            ))}
          </ul>
          <LiveLine paused={paused} />
        </div>
      }
    >
      <div class="list columns-event">
        <ListHeads heads={["Time", "Event", "Address", "Details", ""]} />
        <div class="tail" ref={scroller}>
          {shown.length === 0 ? (
            <EmptyState
              action={
                <a class="button" href="/messages?compose=1">
                  Send a message
                </a>
              }
              command={curlText("GET", "/v1/events/stream", undefined, codeContext()).replace(
                "curl",
                "curl -N",
              )}
            >
              {events.length === 0
                ? "Events appear here in the moment they are stored."
                : "None of the events so far fits the filter."}
            </EmptyState>
          ) : (
            <Rows
              label="Events"
              rows={shown}
              keyOf={({ id }) => id}
              hrefOf={({ messageId }) => `/messages/${messageId}`}
              cells={(event) => <Cells event={event} />}
              scroller={scroller}
              onView={onView}
            />
          )}
        </div>
      </div>
    </Page>
  );
}

/** Returns how many events have come since that one, which was the newest. */
function missedSince(newest: LiveEvent | undefined): number {
  const at = tail.value.findIndex(({ id }) => id === newest?.id);
  return at < 0 ? tail.value.length : at;
}

function LiveLine({ paused }: { paused: boolean }) {
  if (paused) return <span class="quiet">Paused. New events are kept.</span>;
  if (liveState.value === "live") return <Dot tone="good" word="Live" />;
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

function Cells({ event }: { event: LiveEvent }) {
  const details = detailsOf({ type: event.type, data: event });
  const from = details.from as { email?: string } | undefined;
  const facts = FACTS.map((name) => details[name]).filter((fact) => typeof fact === "string" && fact !== "");
  return (
    <>
      {now() - Date.parse(event.occurredAt) < DAY ? (
        <LocalTime at={event.occurredAt} short />
      ) : (
        <RelativeTime at={event.occurredAt} />
      )}
      <EventStatus type={event.type} captured={event.type === "delivery" && isCaptured(details)} />
      <span class="cut">{event.email ?? from?.email ?? ""}</span>
      <span class="cut quiet" dir="auto">
        {facts.join(" · ")}
      </span>
      {event.testMode === true ? <span class="tag">test</span> : <span />}
    </>
  );
}
