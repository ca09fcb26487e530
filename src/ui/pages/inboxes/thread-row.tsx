import type { Labelling, Thread } from "../../api/types.ts";
import { Marked } from "../../components/marked.tsx";
import { Person } from "../../components/people/person.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { Icon } from "../../controls/icon.tsx";
import { memberName } from "./mailbox.ts";

/** Labels of a thread that its row shows. Its page has the others. */
const SHOWN_LABELS = 2;

/** The cells of a thread in the list. */
export function Cells({ thread, mailbox }: { thread: Thread; mailbox: Labelling | null }) {
  const { read, participants, participantNames, messageCount, subject, labels, preview, highlights } = thread;
  const { assigneeId, hasAttachments, snoozedUntil, lastMessageAt } = thread;
  const [first = ""] = participants;
  const more = labels.length - SHOWN_LABELS;
  return (
    <>
      <span class={read ? "read-mark" : "read-mark unread-mark"}>
        <span class="hidden">{read ? "" : "Unread"}</span>
      </span>
      <span class={read ? "who-cell with-person" : "who-cell with-person strong"}>
        <Person name={participantNames[first]} email={first} />
        {messageCount > 1 ? <span class="quiet">{messageCount}</span> : null}
      </span>
      <span class="cut subject-cell" dir="auto">
        {labels.slice(0, SHOWN_LABELS).map((label) => (
          <span key={label} class="tag">
            {label}
          </span>
        ))}
        {more > 0 ? <span class="tag">+{more}</span> : null}
        <span class={read ? undefined : "strong"}>{subject === "" ? "(no subject)" : subject}</span>
        {highlights === undefined ? (
          <span class="quiet"> {preview}</span>
        ) : (
          <Marked highlights={highlights} />
        )}
      </span>
      <span class="cut assignee-cell">
        {assigneeId === null ? "" : memberName(mailbox, assigneeId)}
        {assigneeId === null ? null : <span class="hidden"> takes care of it</span>}
      </span>
      {hasAttachments ? <Icon name="attachment" /> : <span />}
      <RelativeTime at={snoozedUntil ?? lastMessageAt} />
    </>
  );
}
