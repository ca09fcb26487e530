import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Template } from "../../api/types.ts";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";

/** Html that another template begins with. */
export const FIRST_HTML = "<p>Hello {{ name }},</p>\n<p>welcome to Acme.</p>\n";
const FIRST_TEXT = "Hello {{ name }},\n\nwelcome to Acme.\n";

interface NewTemplateProps {
  onClose: () => void;
  onCreated: (template: Template) => void;
}

/** Creates a template with a short text, which the editor then opens. */
export function NewTemplate({ onClose, onCreated }: NewTemplateProps) {
  const task = useTask();
  const name = useSignal("");
  const create = async () => {
    const body = {
      name: name.value.trim(),
      subject: "Hello {{ name }}",
      html: FIRST_HTML,
      text: FIRST_TEXT,
    };
    onCreated(await post<Template>("/v1/templates", body));
  };
  return (
    <Dialog title="Create a template" onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={create}>
        <TextField
          label="Name"
          name="name"
          value={name}
          task={task}
          autoFocus
          placeholder="Order confirmation"
          hint="It begins with a short text, which you then change."
        />
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={task.busy.value}>
            Create template
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
