import { useSignal } from "@preact/signals";
import { now } from "../../browser/clock.ts";
import { ViewLinks } from "../../components/views.tsx";
import { Form, TextField } from "../../controls/form.tsx";
import { Menu } from "../../controls/menu.tsx";
import { useTask } from "../../controls/task.ts";
import { Icon } from "../../controls/icon.tsx";
import { shownName } from "../../state/installation.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { DAY } from "../../words/time.ts";
import { SavedFilters } from "./saved-filters.tsx";

/** The choices of the bar. */
const VIEWS = [
  { name: "All", query: { status: null, direction: null } },
  { name: "Delivered", query: { status: "delivered", direction: "outbound" } },
  { name: "Queued", query: { status: "queued", direction: null } },
  { name: "Scheduled", query: { status: "accepted", direction: null } },
  { name: "Delayed", query: { status: "delivery_delayed", direction: null } },
  { name: "Bounced", query: { status: "bounced", direction: null } },
  { name: "Complained", query: { status: "complained", direction: null } },
  { name: "Rejected", query: { status: "rejected", direction: null } },
  { name: "Failed", query: { status: "failed", direction: null } },
  { name: "Received", query: { status: null, direction: "inbound" } },
];

const DETAILS = [
  { name: "from", label: "Sender", placeholder: "ana@example.com" },
  { name: "to", label: "Recipient", placeholder: "ben@example.com" },
  { name: "tag", label: "Tag", placeholder: "campaign:spring" },
  { name: "after", label: "Not before", placeholder: "2026-01-31" },
  { name: "before", label: "Before", placeholder: "2026-02-28" },
] as const;

/** Filters that are days. */
const DAYS: ReadonlySet<string> = new Set(["after", "before"]);

/** Returns the day of a filter for a date field; empty if there is none. */
function dayOf(name: string): string {
  return (query.value.get(name) ?? "").slice(0, "2026-01-31".length);
}

/** The list's filters: statuses as links, and the rest in a menu. */
export function Filters() {
  return (
    <div class="filters">
      <ViewLinks
        label="Status"
        path="/messages"
        views={VIEWS.map((view) => ({ ...view, name: shownName(view.name) }))}
      />
      {DETAILS.map(({ name, label }) => {
        const value = query.value.get(name);
        return value === null ? null : (
          <a
            key={name}
            class="chip"
            href={urlWith({ [name]: null }, "/messages")}
            aria-label={`Remove ${label} ${value}`}
          >
            {label} {value}
            <Icon name="cross" />
          </a>
        );
      })}
      <MoreFilters key={DETAILS.map(({ name }) => query.value.get(name)).join()} />
    </div>
  );
}

/** Returns the time 24 hours ago, without the part of its second. */
function dayBefore(): string {
  return `${new Date(now() - DAY).toISOString().slice(0, -".000Z".length)}Z`;
}

function MoreFilters() {
  const task = useTask();
  const values = {
    from: useSignal(query.value.get("from") ?? ""),
    to: useSignal(query.value.get("to") ?? ""),
    tag: useSignal(query.value.get("tag") ?? ""),
    after: useSignal(dayOf("after")),
    before: useSignal(dayOf("before")),
  };
  const apply = async () => {
    const changes = Object.entries(values).map(([name, value]) => [name, value.value.trim()]);
    navigate(urlWith(Object.fromEntries(changes), "/messages"));
  };
  return (
    <Menu label="Filter" kind="form">
      <Form class="form" task={task} onSubmit={apply}>
        {DETAILS.map(({ name, label, placeholder }) => (
          <TextField
            key={name}
            label={label}
            name={name}
            value={values[name]}
            placeholder={placeholder}
            type={DAYS.has(name) ? "date" : "text"}
          />
        ))}
        <button type="submit" class="button primary">
          Filter messages
        </button>
        <button
          type="button"
          class="button"
          onClick={() => navigate(urlWith({ after: dayBefore(), before: null }, "/messages"))}
        >
          Last 24 hours
        </button>
      </Form>
      <SavedFilters />
    </Menu>
  );
}
