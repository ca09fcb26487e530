import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { BroadcastCheck } from "../../api/types.ts";
import { useTask } from "../../controls/task.ts";
import { Advice } from "../../controls/advice.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { counted, sizeText } from "../../words/amounts.ts";
import type { Tone } from "../../words/status.ts";

/** `POST /v1/emails/check`, and that of a broadcast. */
interface Checked {
  wouldAccept: boolean;
  error?: { message: string };
  size: number;
  clipped: boolean;
  findings: { level: "error" | "warning" | "info"; code: string; message: string; fix: string }[];
  /** Of a broadcast. */
  missing?: BroadcastCheck["missing"];
}

const LEVELS: Readonly<Record<string, { tone: Tone; word: string }>> = {
  error: { tone: "bad", word: "Fault" },
  warning: { tone: "late", word: "Warning" },
  info: { tone: "quiet", word: "Note" },
};

interface CheckProps {
  /** Path of the check, with its body. */
  path: string;
  body?: object;
}

/**
 * Shows whether the send would be accepted, and what may keep the message from its reader. Nothing is sent.
 */
export function Check({ path, body }: CheckProps) {
  const task = useTask();
  const checked = useSignal<Checked | null>(null);
  // The content cannot change while this tab is open.
  useEffect(() => {
    void task.run(async () => {
      checked.value = await post<Checked>(path, body);
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
  const { wouldAccept, error, size, findings, missing = [] } = found;
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
        {missing.map((lack) => (
          <li key={lack.variable}>
            <Dot tone="bad" word="Fault" />
            <p>{lackText(lack)}</p>
            <p class="hint">
              Give it a value for them: <code>{`{{ ${lack.variable} | default: "…" }}`}</code>
            </p>
          </li>
        ))}
        {findings.map(({ level, code, message, fix }) => (
          <li key={`${code} ${message}`}>
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

/** Returns a sentence about contacts who lack a value. */
export function lackText({ variable, contacts }: BroadcastCheck["missing"][number]): string {
  return `${counted(contacts, "contact has", "contacts have")} no ${variable}.`;
}
