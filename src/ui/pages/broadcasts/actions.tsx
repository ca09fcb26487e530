import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Broadcast } from "../../api/types.ts";
import type { RecordProps } from "../../components/records/page.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";

type Step = "pause" | "resume" | "cancel";

/** The buttons of a broadcast that is on its way: pause, resume, cancel. */
export function Actions({ record: { id, name, status }, onChanged }: RecordProps<Broadcast>) {
  const task = useTask();
  const asks = useSignal(false);
  const close = () => {
    asks.value = false;
  };
  const take = async (step: Step) => {
    onChanged(await post<Broadcast>(`/v1/broadcasts/${encodeURIComponent(id)}/${step}`));
    close();
  };
  const isOpen = status === "scheduled" || status === "sending" || status === "paused";
  const resumes = status === "paused" && can("emails:send");
  const step = resumes ? "resume" : status === "sending" ? "pause" : null;
  return (
    <>
      <Problem error={asks.value ? null : task.error.value} />
      {step === null ? null : (
        <button
          type="button"
          class="button small"
          disabled={task.busy.value}
          onClick={() => void task.run(() => take(step))}
        >
          {step === "resume" ? "Resume" : "Pause"}
        </button>
      )}
      {isOpen ? (
        <button type="button" class="button small" onClick={() => (asks.value = true)}>
          Cancel broadcast
        </button>
      ) : null}
      {asks.value ? (
        <Confirm
          title={`Cancel ${name}?`}
          verb="Cancel broadcast"
          keep="Go on"
          task={task}
          onConfirm={() => take("cancel")}
          onClose={close}
        >
          <p>Nobody else gets it. Messages that wait are rejected. It cannot be resumed.</p>
        </Confirm>
      ) : null}
    </>
  );
}
