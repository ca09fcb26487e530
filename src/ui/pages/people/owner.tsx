import { useSignal } from "@preact/signals";
import { patch } from "../../api/client.ts";
import { TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { me } from "../../state/session.ts";

/** Changes the address of the account's owner. */
export function ChangeOwner({ onClose }: { onClose: () => void }) {
  const email = useSignal(me.peek()?.account.ownerEmail ?? "");
  const change = async () => {
    const { ownerEmail } = await patch<{ ownerEmail: string }>(
      "/v1/account",
      { ownerEmail: email.value.trim() },
      { account: true },
    );
    const known = me.peek();
    if (known) me.value = { ...known, account: { ...known.account, ownerEmail } };
    onClose();
  };
  return (
    <FormDialog title="Change the owner" verb="Change owner" onSubmit={change} onClose={onClose}>
      <TextField
        label="Address of the owner"
        name="ownerEmail"
        type="email"
        value={email}
        autoFocus
        hint="Test mode delivers to this address alone. Notices go there unless other addresses are set."
      />
    </FormDialog>
  );
}
