import { useSignal } from "@preact/signals";
import type { Labelling, Thread } from "../../api/types.ts";
import { Icon } from "../../controls/icon.tsx";
import { Menu } from "../../controls/menu.tsx";
import { useKey } from "../../state/keyboard.ts";
import { type Chosen, ThreadChoice } from "./choices.tsx";
import { EDITS, type ThreadEdit } from "./edits.ts";

interface ActionsProps {
  thread: Thread;
  mailbox: Labelling | null;
  onEdit: (edit: ThreadEdit) => void;
}

/** What can be done with a conversation, by buttons and by keys. */
export function ThreadActions({ thread, mailbox, onEdit }: ActionsProps) {
  const asked = useSignal<Chosen | null>(null);
  const inInbox = thread.folder === "inbox";
  const ask = (what: Chosen) => () => {
    asked.value = what;
  };
  const home = inInbox ? (thread.archived ? EDITS.bringBack : EDITS.archive) : EDITS.toInbox;
  useKey("e", () => onEdit(home));
  useKey("#", () => onEdit(EDITS.toTrash));
  useKey("!", () => onEdit(EDITS.toSpam));
  useKey("u", () => onEdit(EDITS.markUnread));
  useKey("l", ask("label"));
  useKey("i", ask("assign"));
  useKey("b", ask("snooze"));
  return (
    <>
      <button type="button" class="button small" title="e" onClick={() => onEdit(home)}>
        <Icon name="archive" />
        {inInbox ? (thread.archived ? "Bring back" : "Archive") : "Move to inbox"}
      </button>
      <button type="button" class="button small" title="b" onClick={ask("snooze")}>
        Snooze
      </button>
      <button type="button" class="button small" title="l" onClick={ask("label")}>
        Label
      </button>
      {mailbox === null || mailbox.members.length === 0 ? null : (
        <button type="button" class="button small" title="i" onClick={ask("assign")}>
          Assign
        </button>
      )}
      <Menu label="More" kind="actions">
        <button type="button" class="button bare" onClick={() => onEdit(EDITS.markUnread)}>
          Mark as unread <kbd>u</kbd>
        </button>
        {thread.folder === "spam" ? null : (
          <button type="button" class="button bare" onClick={() => onEdit(EDITS.toSpam)}>
            Spam <kbd>!</kbd>
          </button>
        )}
        {thread.folder === "trash" ? null : (
          <button type="button" class="button bare" onClick={() => onEdit(EDITS.toTrash)}>
            Trash <kbd>#</kbd>
          </button>
        )}
      </Menu>
      {asked.value === null ? null : (
        <ThreadChoice
          what={asked.value}
          threads={[thread]}
          mailbox={mailbox}
          onEdit={(edit) => {
            asked.value = null;
            onEdit(edit);
          }}
          onClose={() => {
            asked.value = null;
          }}
        />
      )}
    </>
  );
}
