import { useSignal } from "@preact/signals";
import { patch, remove } from "../../api/client.ts";
import type { Inbox } from "../../api/types.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { TextArea, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { opensForm } from "../../components/create-link.tsx";
import { navigate, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { Senders } from "./senders.tsx";

interface InboxMenuProps {
  /** The inbox that is shown; null: all. */
  inbox: Inbox | null;
  onChanged: () => void;
}

/** Actions on what is shown: one inbox, or all. */
export function InboxMenu({ inbox, onChanged }: InboxMenuProps) {
  return (
    <span class="inbox-menu">
      {inbox === null ? null : <CopyButton text={inbox.address} what="address" />}
      {can("inboxes:read") ? (
        <a class="button bare small" href={urlWith({ senders: "1" })}>
          Senders
        </a>
      ) : null}
      {inbox !== null && can("inboxes:write") ? <Changes inbox={inbox} onChanged={onChanged} /> : null}
      {opensForm("inboxes:read", "senders") ? (
        <Senders
          inbox={inbox}
          onChanged={onChanged}
          onClose={() => navigate(urlWith({ senders: null }), { replace: true })}
        />
      ) : null}
    </span>
  );
}

interface ChangesProps {
  inbox: Inbox;
  onChanged: () => void;
}

function Changes({ inbox, onChanged }: ChangesProps) {
  const open = useSignal<"rename" | "signature" | "delete" | null>(null);
  const close = () => {
    open.value = null;
  };
  return (
    <>
      <button type="button" class="button bare small" onClick={() => (open.value = "rename")}>
        Rename
      </button>
      <button type="button" class="button bare small" onClick={() => (open.value = "signature")}>
        Signature
      </button>
      <button type="button" class="button bare small" onClick={() => (open.value = "delete")}>
        Delete
      </button>
      {open.value === "rename" ? <Rename inbox={inbox} onChanged={onChanged} onClose={close} /> : null}
      {open.value === "signature" ? <Sign inbox={inbox} onChanged={onChanged} onClose={close} /> : null}
      {open.value === "delete" ? <Delete inbox={inbox} onChanged={onChanged} onClose={close} /> : null}
    </>
  );
}

interface DialogProps extends ChangesProps {
  onClose: () => void;
}

function Rename({ inbox, onChanged, onClose }: DialogProps) {
  const name = useSignal(inbox.displayName);
  const save = async () => {
    await patch(`/v1/inboxes/${encodeURIComponent(inbox.id)}`, { displayName: name.value.trim() });
    onChanged();
    onClose();
  };
  return (
    <FormDialog
      title="Rename the inbox"
      verb="Rename inbox"
      keep="Keep the name"
      onSubmit={save}
      onClose={onClose}
    >
      <TextField
        label="Display name"
        name="displayName"
        value={name}
        autoFocus
        hint={`Shown to the people who get replies from ${inbox.address}.`}
      />
    </FormDialog>
  );
}

function Sign({ inbox, onChanged, onClose }: DialogProps) {
  const signature = useSignal(inbox.signature);
  const save = async () => {
    await patch(`/v1/inboxes/${encodeURIComponent(inbox.id)}`, { signature: signature.value.trimEnd() });
    onChanged();
    onClose();
  };
  return (
    <FormDialog title="Signature" verb="Save signature" onSubmit={save} onClose={onClose}>
      <TextArea
        label="Text"
        name="signature"
        value={signature}
        rows={5}
        hint="The dashboard puts it below replies and forwarded messages from this inbox. Each can leave it out."
      />
    </FormDialog>
  );
}

function Delete({ inbox, onChanged, onClose }: DialogProps) {
  const erase = async () => {
    await remove(`/v1/inboxes/${encodeURIComponent(inbox.id)}`);
    onChanged();
    onClose();
    navigate("/inboxes");
  };
  return (
    <Confirm title={`Delete ${inbox.address}?`} verb="Delete inbox" onConfirm={erase} onClose={onClose}>
      <p>
        The inbox and its threads are deleted, and mail to it is refused. Its messages stay in the list of
        messages.
      </p>
    </Confirm>
  );
}
