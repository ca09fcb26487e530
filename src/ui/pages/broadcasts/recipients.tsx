import { useSignal } from "@preact/signals";
import { usePages } from "../../api/pages.ts";
import { useReloadAfter } from "../../api/resource.ts";
import type { Broadcast, BroadcastRecipient } from "../../api/types.ts";
import { saveTable } from "../../components/files/lists-as-files.tsx";
import { Status } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";

/** The filters of the list, in the order of a message's way. */
const OUTCOMES = [
  ["sent", "Sent"],
  ["delivered", "Delivered"],
  ["opened", "Opened"],
  ["clicked", "Clicked"],
  ["unsubscribed", "Unsubscribed"],
  ["bounced", "Bounced"],
  ["complained", "Complained"],
  ["failed", "Not sent"],
] as const;

/** Who got a broadcast, the last first, with what became of each message. */
export function Recipients({ record: { id, counts } }: { record: Broadcast }) {
  const path = `/v1/broadcasts/${encodeURIComponent(id)}/recipients`;
  const outcome = useSignal("");
  const filter = outcome.value === "" ? {} : { outcome: outcome.value };
  const pages = usePages<BroadcastRecipient>(path, filter, (row) => row.id);
  const task = useTask();
  useReloadAfter(JSON.stringify(counts), pages.refresh);
  const rows = pages.rows.value;
  return (
    <section class="form" aria-label="Recipients">
      <Problem error={pages.error.value ?? task.error.value} onRetry={pages.refresh} />
      <div class="filters">
        <select
          aria-label="What became of the messages"
          value={outcome.value}
          onChange={(event) => (outcome.value = event.currentTarget.value)}
        >
          <option value="">All recipients</option>
          {OUTCOMES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </div>
      <ul class="list plain-rows columns-messages columns-people">
        {rows.map((row) => (
          <li key={row.id}>
            <Recipient row={row} />
          </li>
        ))}
      </ul>
      {rows.length === 0 && pages.done.value ? (
        <p class="quiet">{outcome.value === "" ? "No message was made yet." : "None of the recipients."}</p>
      ) : null}
      <div class="part-actions">
        {pages.done.value || !pages.ready.value ? null : (
          <button type="button" class="button small" disabled={pages.loading.value} onClick={pages.more}>
            Show more
          </button>
        )}
        {rows.length === 0 ? null : (
          <button
            type="button"
            class="button small"
            disabled={task.busy.value}
            onClick={() => void task.run(() => saveTable("recipients.csv", path, filter))}
          >
            {outcome.value === "" ? "Export all" : "Export these"}
          </button>
        )}
      </div>
    </section>
  );
}

/** One recipient. It leads to the message, if the reader may see messages. */
function Recipient({
  row: { id, email, status, reason, opened, clicked, lastEventAt },
}: {
  row: BroadcastRecipient;
}) {
  const did = [opened ? "opened" : null, clicked ? "clicked" : null, reason].filter((one) => one !== null);
  const cells = (
    <>
      <Status status={status} />
      <span class="cut who-cell">{email}</span>
      <span class="cut subject-cell">{did.join(", ")}</span>
      {lastEventAt === null ? <span /> : <RelativeTime at={lastEventAt} />}
    </>
  );
  return can("emails:read") ? (
    <a class="row" href={`/messages/${id}`}>
      {cells}
    </a>
  ) : (
    <div class="row">{cells}</div>
  );
}
