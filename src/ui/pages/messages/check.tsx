import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { SendItem } from "../../api/types.ts";
import { useTask } from "../../controls/task.ts";
import { Advice } from "../../controls/advice.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { sizeText } from "../../words/amounts.ts";
import type { Tone } from "../../words/status.ts";

/** `POST /v1/emails/check`. */
interface Checked {
  wouldAccept: boolean;
  error?: { message: string };
  size: number;
  clipped: boolean;
  findings: { level: "error" | "warning" | "info"; code: string; message: string; fix: string }[];
}

const LEVELS: Readonly<Record<string, { tone: Tone; word: string }>> = {
  error: { tone: "bad", word: "Fault" },
  warning: { tone: "late", word: "Warning" },
  info: { tone: "quiet", word: "Note" },
};

/**
 * Shows whether the send would be accepted, and what may keep the message from its reader. Nothing is sent.
 */
export function Check({ item }: { item: SendItem }) {
  const task = useTask();
  const checked = useSignal<Checked | null>(null);
  // The item cannot change while this tab is open.
  useEffect(() => {
    void task.run(async () => {
      checked.value = await post<Checked>("/v1/emails/check", item);
    });
  }, []);
  const found = checked.value;
  return (
    <section class="form" aria-label="Check" aria-busy={task.busy.value}>
      <Problem error={task.error.value} />
      {found === null ? null : <Answer found={found} />}
    </section>
  );
}

function Answer({ found }: { found: Checked }) {
  const { wouldAccept, error, size, findings } = found;
  return (
    <>
      <p class="answer" role="status">
        <Dot
          tone={wouldAccept ? "good" : "bad"}
          word={wouldAccept ? "Would be accepted" : "Would be refused"}
        />
        <span>{error === undefined ? sizeText(size) : <Advice text={error.message} />}</span>
      </p>
      {wouldAccept && findings.length === 0 ? <p class="quiet">The check found nothing to improve.</p> : null}
      <ul class="form" aria-label="Findings">
        {findings.map(({ level, code, message, fix }) => (
          <li key={code}>
            <Dot {...(LEVELS[level] ?? { tone: "quiet", word: level })} />
            <p>{message}</p>
            <p class="hint">
              <Advice text={fix} />
            </p>
          </li>
        ))}
      </ul>
    </>
  );
}
