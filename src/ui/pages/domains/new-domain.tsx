import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Domain } from "../../api/types.ts";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";

interface NewDomainProps {
  onClose: () => void;
  onCreated: (domain: Domain) => void;
}

/** Adds a domain to the project. */
export function NewDomain({ onClose, onCreated }: NewDomainProps) {
  const name = useSignal("");
  const task = useTask();
  const create = async () => {
    onCreated(await post<Domain>("/v1/domains", { domain: name.value.trim() }));
  };
  return (
    <Dialog title="Add a domain" onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={create}>
        <TextField
          label="Domain"
          name="domain"
          value={name}
          task={task}
          autoFocus
          placeholder="mail.example.com"
          hint="A subdomain that is used for sending only keeps your other mail apart."
        />
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={task.busy.value}>
            Add domain
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
