import { useSignal } from "@preact/signals";
import type { Labelling, Thread } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { ChoiceDialog } from "../../controls/choice-dialog.tsx";
import { TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { snoozeTimes } from "../../words/snooze.ts";
import { localField, localTime } from "../../words/time.ts";
import { assignEdit, labelEdit, snoozeEdit, type ThreadEdit } from "./edits.ts";
import { isMe } from "../../state/reader.ts";
import { membersOf } from "./mailbox.ts";

/** What is chosen for threads. */
export type Chosen = "label" | "assign" | "snooze";

interface ChoiceProps {
  /** The threads that it is chosen for. */
  threads: readonly Thread[];
  mailbox: Labelling | null;
  onEdit: (edit: ThreadEdit) => void;
  onClose: () => void;
}

const DIALOGS = { label: LabelChoice, assign: AssignChoice, snooze: SnoozeChoice };

/** The window that asks for a label, a member or a time. */
export function ThreadChoice({ what, ...props }: ChoiceProps & { what: Chosen }) {
  const Shown = DIALOGS[what];
  return <Shown {...props} />;
}

function LabelChoice({ threads, mailbox, onEdit, onClose }: ChoiceProps) {
  const isOn = (label: string) => threads.every(({ labels }) => labels.includes(label));
  const known = new Set([
    ...threads.flatMap(({ labels }) => labels),
    ...(mailbox?.labels ?? []).map(({ label }) => label),
  ]);
  return (
    <ChoiceDialog
      title="Label"
      placeholder="Find or write a label"
      none="No label is in use yet."
      choices={[...known].map((label) => ({ id: label, text: label, chosen: isOn(label) }))}
      made={(typed) => ({ id: typed, text: typed, hint: "New label" })}
      onChoose={(label) => onEdit(labelEdit(label, !isOn(label)))}
      onClose={onClose}
    />
  );
}

function AssignChoice({ threads, mailbox, onEdit, onClose }: ChoiceProps) {
  const isOn = (id: string | null) => threads.every(({ assigneeId }) => assigneeId === id);
  const members = membersOf(mailbox);
  return (
    <ChoiceDialog
      title="Assign to"
      placeholder="Find a person"
      none="There is nobody of that name. Owners invite people on the page People."
      choices={[
        ...members.map(({ id, email }) => ({
          id,
          text: email,
          chosen: isOn(id),
          ...(isMe(id) ? { hint: "You" } : {}),
        })),
        { id: "", text: "Nobody", chosen: isOn(null) },
      ]}
      onChoose={(id) =>
        onEdit(assignEdit(id === "" ? null : id, members.find((one) => one.id === id)?.email ?? ""))
      }
      onClose={onClose}
    />
  );
}

function SnoozeChoice({ onEdit, onClose }: ChoiceProps) {
  const asks = useSignal(false);
  const times = snoozeTimes(now());
  if (asks.value) return <SnoozeAt onEdit={onEdit} onClose={onClose} />;
  return (
    <ChoiceDialog
      title="Snooze until"
      placeholder="Find a time"
      none="No time has that name."
      choices={[
        ...times.map(({ name, at, hint }) => ({ id: String(at), text: name, hint })),
        { id: "", text: "Another time…" },
      ]}
      onChoose={(id) => {
        const time = times.find(({ at }) => String(at) === id);
        if (time === undefined) asks.value = true;
        else onEdit(snoozeEdit(time.at, time.hint));
      }}
      onClose={onClose}
    />
  );
}

function SnoozeAt({ onEdit, onClose }: Pick<ChoiceProps, "onEdit" | "onClose">) {
  const first = snoozeTimes(now()).find(({ name }) => name === "Tomorrow")?.at ?? now();
  const at = useSignal(localField(first));
  const until = Date.parse(at.value);
  return (
    <FormDialog
      title="Snooze until"
      verb="Snooze"
      incomplete={Number.isNaN(until)}
      onSubmit={async () => onEdit(snoozeEdit(until, localTime(until)))}
      onClose={onClose}
    >
      <TextField
        label="Time"
        name="snoozedUntil"
        type="datetime-local"
        value={at}
        autoFocus
        min={localField(now())}
        hint="In your own time zone, at most a year ahead. An answer brings it back earlier."
      />
    </FormDialog>
  );
}
