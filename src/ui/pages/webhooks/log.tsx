import { useEffect } from "preact/hooks";
import { isSeen, useLiveReload } from "../../api/live.ts";
import type { Pages } from "../../api/pages.ts";
import type { Delivery, Webhook } from "../../api/types.ts";
import { every } from "../../browser/clock.ts";
import { EmptyState } from "../../components/empty.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { navigate, query, urlWith } from "../../state/router.ts";
import type { Tone } from "../../words/status.ts";
import { DeliveryBody } from "./delivery.tsx";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { EVENT_TYPES } from "../../api/server-lists.ts";

/** Minimum time between reloads of the log while events arrive, ms. */
const REFRESH_MS = 500;
/**
 * No event says that an attempt has ended, so the log is reloaded at this interval while a delivery waits, ms.
 */
const WATCH_MS = 2_000;

interface LogProps {
  webhook: Webhook;
  path: string;
  log: Pages<Delivery>;
}

const VIEWS = [
  { id: null, name: "All" },
  { id: "pending", name: "Pending" },
  { id: "succeeded", name: "Succeeded" },
  { id: "failed", name: "Failed" },
] as const;

/** Deliveries to a webhook, newest first. An entry opens to its payload and attempts. */
export function DeliveryLog({ webhook, path, log }: LogProps) {
  const rows = log.rows.value;
  const waits = rows.some(({ status }) => status === "pending");
  useLiveReload(log.refresh, REFRESH_MS);
  useEffect(() => {
    if (!waits) return;
    return every(WATCH_MS, () => {
      if (isSeen()) log.refresh();
    });
  }, [waits, log]);
  const view = query.value.get("status");
  return (
    <section class="detail-part" aria-label="Deliveries">
      <div class="part-head">
        <h3>Deliveries</h3>
        <TestButton webhook={webhook} path={path} onSent={log.refresh} />
      </div>
      <ul class="views" aria-label="Deliveries to show">
        {VIEWS.map(({ id, name }) => (
          <li key={name}>
            <a href={urlWith({ status: id, delivery: null })} aria-current={id === view ? "true" : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
      <Problem error={log.error.value} onRetry={log.refresh} />
      <ul class="deliveries">
        {rows.map((delivery) => (
          <Entry key={delivery.id} delivery={delivery} path={path} onChanged={log.refresh} />
        ))}
      </ul>
      {rows.length === 0 && log.done.value ? (
        <EmptyState>
          {view === null
            ? "Nothing was pushed yet. Send a test to see a delivery."
            : "No delivery has this status."}
        </EmptyState>
      ) : null}
      {log.done.value || !log.ready.value ? null : (
        <button type="button" class="button small" disabled={log.loading.value} onClick={log.more}>
          Show older deliveries
        </button>
      )}
    </section>
  );
}

const STATES: Readonly<Record<Delivery["status"], { word: string; tone: Tone }>> = {
  pending: { word: "Pending", tone: "moving" },
  succeeded: { word: "Succeeded", tone: "good" },
  failed: { word: "Failed", tone: "bad" },
};

interface EntryProps {
  delivery: Delivery;
  path: string;
  onChanged: () => void;
}

function Entry({ delivery, path, onChanged }: EntryProps) {
  const { id, type, status, attempts, httpStatus, createdAt } = delivery;
  const open = query.value.get("delivery") === id;
  return (
    <li>
      <button
        type="button"
        class="delivery"
        aria-expanded={open}
        onClick={() => navigate(urlWith({ delivery: open ? null : id }), { replace: true })}
      >
        <Dot
          {...(status === "pending" && attempts > 0 ? { word: "Retrying", tone: "late" } : STATES[status])}
        />
        <span class="cut">{type}</span>
        <span class="quiet">
          {httpStatus !== null ? `HTTP ${httpStatus}` : attempts > 0 ? "no answer" : ""}
        </span>
        <RelativeTime at={createdAt} />
      </button>
      {open ? <DeliveryBody delivery={delivery} path={path} onChanged={onChanged} /> : null}
    </li>
  );
}

interface TestProps {
  webhook: Webhook;
  path: string;
  onSent: () => void;
}

/** Sends a made-up event of a chosen type to a webhook. */
function TestButton({ webhook: { enabled, eventTypes }, path, onSent }: TestProps) {
  const wanted: readonly string[] = eventTypes;
  const types = wanted.includes("*") ? EVENT_TYPES : EVENT_TYPES.filter((type) => wanted.includes(type));
  const type = useSignal(types.includes("delivery") ? "delivery" : (types[0] ?? "delivery"));
  const task = useTask();
  if (!can("webhooks:write")) return null;
  const test = () =>
    task.run(async () => {
      await post(`${path}/test`, { type: type.value });
      onSent();
    });
  return (
    <>
      <span class="part-actions">
        <select
          class="small-select"
          aria-label="Event of the test"
          value={type.value}
          onChange={(event) => (type.value = event.currentTarget.value)}
        >
          {types.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button
          type="button"
          class="button small"
          disabled={!enabled || task.busy.value}
          onClick={() => void test()}
        >
          Send test
        </button>
      </span>
      <Problem error={task.error.value} />
    </>
  );
}
