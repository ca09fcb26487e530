import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { SendItem } from "../../api/types.ts";
import type { Task } from "../../controls/task.ts";
import { me } from "../../state/session.ts";

/** Sends what the window holds to the person at the desk alone, now. */
export function TestSend({ item, task, disabled }: { item: SendItem; task: Task; disabled: boolean }) {
  const sent = useSignal<string | null>(null);
  const own = me.value?.member?.email ?? me.value?.account.ownerEmail;
  if (own === undefined) return null;
  const send = async () => {
    sent.value = null;
    const { cc: _cc, bcc: _bcc, scheduledAt: _at, ...rest } = item;
    const { id } = await post<{ id: string }>("/v1/emails", { ...rest, to: [{ email: own }] });
    sent.value = id;
  };
  return (
    <>
      <span class="quiet" role="status">
        {sent.value === null ? null : <a href={`/messages/${sent.value}`}>Open the test to {own}</a>}
      </span>
      <button
        type="button"
        class="button"
        title={`To ${own} alone`}
        disabled={disabled || task.busy.value}
        onClick={() => void task.run(send)}
      >
        Send me a test
      </button>
    </>
  );
}
