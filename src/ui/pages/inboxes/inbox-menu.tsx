import { useSignal } from "@preact/signals";
import { patch, remove } from "../../api/client.ts";
import type { Inbox } from "../../api/types.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { navigate } from "../../state/router.ts";
import { can } from "../../state/session.ts";

interface InboxMenuProps {
  inbox: Inbox;
  onChanged: () => void;
}

/** Actions on the inbox that is shown. */
export function InboxMenu({ inbox, onChanged }: InboxMenuProps) {
  const open = useSignal<"rename" | "delete" | null>(null);
  const close = () => {
    open.value = null;
  };
  return (
    <span class="inbox-menu">
      <CopyButton text={inbox.address} what="address" />
      {can("inboxes:write") ? (
        <>
          <button type="button" class="button bare small" onClick={() => (open.value = "rename")}>
            Rename
          </button>
          <button type="button" class="button bare small" onClick={() => (open.value = "delete")}>
            Delete
          </button>
        </>
      ) : null}
      {open.value === "rename" ? <Rename inbox={inbox} onChanged={onChanged} onClose={close} /> : null}
      {open.value === "delete" ? <Delete inbox={inbox} onChanged={onChanged} onClose={close} /> : null}
    </span>
  );
}

interface DialogProps extends InboxMenuProps {
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
