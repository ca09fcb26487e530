import { useSignal } from "@preact/signals";
import type { Task } from "../../controls/task.ts";
import { me } from "../../state/session.ts";

interface TestProps {
  /** Sends it to one address. Returns the id of the message. */
  onTest: (to: string) => Promise<string>;
  task: Task;
  disabled?: boolean;
}

/** Sends what is written to the person at the desk alone, now. */
export function TestSend({ onTest, task, disabled = false }: TestProps) {
  const sent = useSignal<string | null>(null);
  const own = me.value?.member?.email ?? me.value?.account.ownerEmail;
  if (own === undefined) return null;
  const send = async () => {
    sent.value = null;
    sent.value = await onTest(own);
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
