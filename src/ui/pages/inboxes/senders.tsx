import { useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import { usePages } from "../../api/pages.ts";
import type { Inbox, ListedSender } from "../../api/types.ts";
import { Entries } from "../../components/records/entries.tsx";
import { Dot } from "../../components/status.tsx";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, SelectField, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { AcceptField } from "./accept.tsx";

interface SendersProps {
  /** The inbox that is shown; null: all. */
  inbox: Inbox | null;
  onChanged: () => void;
  onClose: () => void;
}

/** Whose mail an inbox takes: its choice, its allow and block lists, and those of the project. */
export function Senders({ inbox, onChanged, onClose }: SendersProps) {
  const title = inbox === null ? "Senders" : `Senders of ${inbox.address}`;
  return (
    <Dialog title={title} size="wide" onClose={onClose}>
      <div class="dialog-body form">
        {inbox === null ? null : (
          <>
            <Accept inbox={inbox} onChanged={onChanged} />
            <SenderLists
              title="For this inbox"
              path={`/v1/inboxes/${encodeURIComponent(inbox.id)}/senders`}
            />
          </>
        )}
        <SenderLists title="For all inboxes of the project" path="/v1/inbound/senders" />
        <p class="hint">
          Mail of blocked senders gets 550 5.7.1 before it is accepted; only its header is kept. An allowed
          sender has the trust “allowed” if DMARC proves the author, so that a forged address gains nothing.
          An address decides before its domain.
        </p>
      </div>
    </Dialog>
  );
}

function Accept({ inbox, onChanged }: Pick<SendersProps, "onChanged"> & { inbox: Inbox }) {
  const accept = useSignal(inbox.accept);
  const task = useTask();
  const save = async () => {
    await patch<Inbox>(`/v1/inboxes/${encodeURIComponent(inbox.id)}`, { accept: accept.value });
    onChanged();
  };
  return (
    <Form task={task} onSubmit={save}>
      <AcceptField value={accept} />
      {can("inboxes:write") && accept.value !== inbox.accept ? (
        <p class="part-actions">
          <button type="submit" class="button primary" disabled={task.busy.value}>
            Save choice
          </button>
        </p>
      ) : null}
    </Form>
  );
}

/** The allowed and blocked senders of one inbox, or of the project. */
function SenderLists({ title, path }: { title: string; path: string }) {
  const pages = usePages<ListedSender>(path, {}, ({ id }) => id);
  return (
    <section class="detail-part form" aria-label={title}>
      <h3>{title}</h3>
      <Entries
        pages={pages}
        path={path}
        nameOf={({ pattern }) => pattern}
        state={({ list }) =>
          list === "allow" ? <Dot tone="good" word="Allowed" /> : <Dot tone="bad" word="Blocked" />
        }
        empty="No sender is listed."
        changes={can("inboxes:write")}
      />
      {can("inboxes:write") ? <AddSender path={path} onAdded={pages.refresh} /> : null}
    </section>
  );
}

function AddSender({ path, onAdded }: { path: string; onAdded: () => void }) {
  const pattern = useSignal("");
  const list = useSignal("block");
  const task = useTask();
  const add = async () => {
    await post<ListedSender>(path, { pattern: pattern.value.trim(), list: list.value });
    pattern.value = "";
    onAdded();
  };
  return (
    <Form task={task} onSubmit={add}>
      <div class="field-pair">
        <TextField
          label="Address or @domain"
          name="pattern"
          value={pattern}
          code
          placeholder="@example.com"
        />
        <SelectField
          label="List"
          name="list"
          value={list}
          options={[
            { value: "block", text: "Block" },
            { value: "allow", text: "Allow" },
          ]}
        />
      </div>
      <p class="part-actions">
        <button type="submit" class="button" disabled={task.busy.value || pattern.value.trim() === ""}>
          {list.value === "block" ? "Block sender" : "Allow sender"}
        </button>
      </p>
    </Form>
  );
}
