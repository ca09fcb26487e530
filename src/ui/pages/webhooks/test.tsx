import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Webhook } from "../../api/types.ts";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { can } from "../../state/session.ts";
import { EVENT_TYPES } from "../../api/server-lists.ts";

interface TestProps {
  webhook: Webhook;
  path: string;
  onSent: () => void;
}

/** Sends a made-up event of a chosen type to a webhook. */
export function TestButton({ webhook: { enabled, eventTypes }, path, onSent }: TestProps) {
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
