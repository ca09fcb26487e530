import { post } from "../../api/client.ts";
import type { Message } from "../../api/types.ts";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { localTime } from "../../words/time.ts";

type Invited = NonNullable<Message["invitation"]>;

const WORDS: Readonly<Record<string, string>> = {
  REQUEST: "Invitation",
  CANCEL: "Cancelled",
  REPLY: "Answer",
};
const ANSWERS = [
  ["accepted", "Accept"],
  ["tentative", "Maybe"],
  ["declined", "Decline"],
] as const;

/** The event of a received message, with the answers to an invitation. */
export function Invitation({ message, onReplied }: { message: Message; onReplied: () => void }) {
  const task = useTask();
  const { id, threadId, invitation } = message;
  if (invitation === undefined || invitation === null) return null;
  const { method, summary, location, start, recurring, organizer, attendees } = invitation;
  const answer = (given: string) =>
    task.run(async () => {
      const path = `/v1/threads/${encodeURIComponent(threadId ?? "")}/reply`;
      await post(path, { messageId: id, invitation: given });
      onReplied();
    });
  const asks = method === "REQUEST" && organizer !== null && threadId !== null && can("threads:reply");
  return (
    <div class="invitation">
      <p>
        <strong>{WORDS[method] ?? "Event"}</strong> <span dir="auto">{summary ?? "(no title)"}</span>
      </p>
      <p class="quiet">
        {[start === null ? null : timeOf(start, invitation), recurring ? "repeats" : null, location]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {method === "REPLY" ? (
        <p>{attendees.map(({ email, answer }) => `${email}: ${answer}`).join(", ")}</p>
      ) : null}
      {asks ? (
        <p class="letter-files">
          {ANSWERS.map(([given, label]) => (
            <button
              key={given}
              type="button"
              class="button small"
              disabled={task.busy.value}
              onClick={() => void answer(given)}
            >
              {label}
            </button>
          ))}
          <span class="quiet">answers {organizer}</span>
        </p>
      ) : null}
      <Problem error={task.error.value} />
    </div>
  );
}

/** A UTC time is shown in the reader's zone. Others are shown as written, with their zone. */
function timeOf(time: string, { timeZone }: Invited): string {
  if (time.endsWith("Z")) return localTime(Date.parse(time)).replace(/:\d\d$/, "");
  const written = time.replace("T", ", ").replace(/:\d\d$/, "");
  return timeZone === null ? written : `${written} (${timeZone})`;
}
