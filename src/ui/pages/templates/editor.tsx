import { useSignal } from "@preact/signals";
import { patch } from "../../api/client.ts";
import type { Template } from "../../api/types.ts";
import { Form, TextArea, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { Tabs } from "../../components/tabs.tsx";
import { unsaved, useUnsaved } from "../../state/unsaved.ts";
import { can } from "../../state/session.ts";
import { sampleData, withMissing } from "../../words/sample-data.ts";
import { Rendering } from "./rendering.tsx";

interface EditorProps {
  template: Template;
  path: string;
  onSaved: (template: Template) => void;
}

/** Edits a template next to a preview that follows each change. */
export function Editor({ template, path, onSaved }: EditorProps) {
  const task = useTask();
  const tab = useSignal(template.html === null ? "text" : "html");
  const draftName = `template ${template.id}`;
  const kept = unsaved<"name" | "subject" | "html" | "text">(draftName);
  const name = useSignal(kept.name ?? template.name);
  const subject = useSignal(kept.subject ?? template.subject);
  const html = useSignal(kept.html ?? template.html ?? "");
  const text = useSignal(kept.text ?? template.text ?? "");
  const data = useSignal(JSON.stringify(sampleData(template.variables), null, 2));
  const changed =
    name.value !== template.name ||
    subject.value !== template.subject ||
    html.value !== (template.html ?? "") ||
    text.value !== (template.text ?? "");
  useUnsaved(draftName, changed, {
    name: name.value,
    subject: subject.value,
    html: html.value,
    text: text.value,
  });
  const save = async () => {
    const orNull = (part: string) => (part === "" ? null : part);
    const body = {
      name: name.value.trim(),
      subject: subject.value,
      html: orNull(html.value),
      text: orNull(text.value),
    };
    onSaved(await patch<Template>(path, body));
  };
  const addMissing = (missing: readonly string[]) => {
    data.value = withMissing(data.value, missing);
    tab.value = "data";
  };
  return (
    <div class="editor">
      <Form class="form" task={task} onSubmit={save}>
        <TextField label="Name" name="name" value={name} />
        <TextField label="Subject" name="subject" value={subject} />
        <Tabs
          label="Parts of the template"
          tabs={[
            { id: "html", label: "HTML" },
            { id: "text", label: "Text" },
            { id: "data", label: "Data" },
          ]}
          selected={tab.value}
          onSelect={(id) => (tab.value = id)}
        >
          {tab.value === "html" ? (
            <TextArea label="HTML" labelHidden name="html" value={html} rows={20} code />
          ) : tab.value === "text" ? (
            <TextArea label="Text" labelHidden name="text" value={text} rows={20} code />
          ) : (
            <TextArea
              label="Data"
              labelHidden
              name="data"
              value={data}
              rows={20}
              code
              hint="JSON that fills the preview. It is not saved."
            />
          )}
        </Tabs>
        {can("templates:write") ? (
          <footer class="editor-foot">
            <span class="quiet" role="status">
              {changed ? "Not saved yet." : "Saved."}
            </span>
            <button type="submit" class="button primary" disabled={task.busy.value || !changed}>
              Save template
            </button>
          </footer>
        ) : null}
      </Form>
      <Rendering
        subject={subject.value}
        html={html.value}
        text={text.value}
        data={data.value}
        onMissing={addMissing}
      />
    </div>
  );
}
