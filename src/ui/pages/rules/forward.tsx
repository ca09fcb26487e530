import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { usePages } from "../../api/pages.ts";
import type { ForwardAddress } from "../../api/types.ts";
import { Entries } from "../../components/records/entries.tsx";
import { Dot } from "../../components/status.tsx";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";

const PATH = "/v1/forward-addresses";

/** The addresses that rules may forward to, and the form that asks the owner of another one. */
export function ForwardAddresses({ onClose }: { onClose: () => void }) {
  const pages = usePages<ForwardAddress>(PATH, {}, ({ id }) => id);
  return (
    <Dialog title="Forward addresses" onClose={onClose}>
      <div class="dialog-body form">
        <p class="quiet">
          Rules forward only to addresses whose owners have agreed. Each gets a link by mail; nothing is
          forwarded before it is used.
        </p>
        <Entries
          pages={pages}
          path={PATH}
          nameOf={({ email }) => email}
          state={({ status }) =>
            status === "confirmed" ? <Dot tone="good" word="Agreed" /> : <Dot tone="late" word="Waits" />
          }
          empty="No address was asked yet."
          changes={can("inboxes:write")}
        />
        {can("inboxes:write") ? <Ask onAsked={pages.refresh} /> : null}
      </div>
    </Dialog>
  );
}

function Ask({ onAsked }: { onAsked: () => void }) {
  const email = useSignal("");
  const task = useTask();
  const ask = async () => {
    await post<ForwardAddress>(PATH, { email: email.value.trim() });
    email.value = "";
    onAsked();
  };
  return (
    <Form task={task} onSubmit={ask}>
      <TextField label="Address" name="email" type="email" value={email} placeholder="ana@example.com" />
      <p class="part-actions">
        <button type="submit" class="button" disabled={task.busy.value || email.value.trim() === ""}>
          Ask the owner
        </button>
      </p>
    </Form>
  );
}
