import { get, post } from "../../api/client.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Delivery, DeliveryDetail } from "../../api/types.ts";
import { Code, Id } from "../../controls/copy.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can } from "../../state/session.ts";

interface BodyProps {
  delivery: Delivery;
  path: string;
  onChanged: () => void;
}

/** One delivery in full: the outcome of each attempt, and the payload. */
export function DeliveryBody({ delivery, path, onChanged }: BodyProps) {
  const { id, status, attempts, messageId, nextAttemptAt } = delivery;
  const own = `${path}/deliveries/${encodeURIComponent(id)}`;
  const detail = useResource(`delivery ${id}`, () => get<DeliveryDetail>(own));
  const task = useTask();
  // The list says that there was another attempt.
  useReloadAfter(`${status} ${attempts}`, detail.reload);
  const replay = () =>
    task.run(async () => {
      await post(`${own}/replay`);
      onChanged();
    });
  const found = detail.value.value;
  return (
    <div class="delivery-body">
      <div class="part-head">
        <span class="part-actions">
          <Id id={id} what="delivery id" />
          {messageId === null ? null : <a href={`/messages/${messageId}`}>Open the message</a>}
        </span>
        {can("webhooks:write") ? (
          <button type="button" class="button small" disabled={task.busy.value} onClick={() => void replay()}>
            Replay
          </button>
        ) : null}
      </div>
      {status === "pending" && nextAttemptAt !== null && attempts > 0 ? (
        <p class="quiet">
          It is tried again at <LocalTime at={nextAttemptAt} />.
        </p>
      ) : null}
      <Problem error={task.error.value} />
      <Problem error={detail.error.value} onRetry={detail.reload} />
      {found === null ? null : <Contents detail={found} />}
    </div>
  );
}

function Contents({ detail: { attemptLog, request } }: { detail: DeliveryDetail }) {
  return (
    <>
      <h4>Attempts</h4>
      {attemptLog.length === 0 ? <p class="quiet">None has ended yet.</p> : null}
      <ol class="attempts">
        {attemptLog.map(({ at, httpStatus, response, error }) => (
          <li key={at}>
            <p>
              <Dot
                tone={httpStatus !== null && httpStatus < 300 ? "good" : "bad"}
                word={httpStatus === null ? "No answer" : `HTTP ${httpStatus}`}
              />
              <LocalTime at={at} />
            </p>
            {error === null && (response ?? "") === "" ? null : <pre>{error ?? response}</pre>}
          </li>
        ))}
      </ol>
      <h4>Payload</h4>
      {request.body === null ? (
        <p class="quiet">The message is gone, and the payload with it.</p>
      ) : (
        <Code text={pretty(request.body)} what="payload" />
      )}
    </>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
