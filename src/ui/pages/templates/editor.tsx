import { useSignal } from "@preact/signals";
import { patch } from "../../api/client.ts";
import type { Template } from "../../api/setup-types.ts";
import { Form, TextArea, TextField, useTask } from "../../components/form.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { can } from "../../state/session.ts";
import { sampleData, withMissing } from "../../words/sample-data.ts";
import { Rendering } from "./rendering.tsx";
import type { Source } from "./source.ts";

interface EditorProps {
  template: Template;
  path: string;
  onSaved: (template: Template) => void;
}

const FIELDS = ["name", "subject", "html", "text"];

/** Edits a template next to a preview that follows each change. */
export function Editor({ template, path, onSaved }: EditorProps) {
  const task = useTask();
  const tab = useSignal(template.html === null ? "text" : "html");
  const source: Source = {
    name: useSignal(template.name),
    subject: useSignal(template.subject),
    html: useSignal(template.html ?? ""),
    text: useSignal(template.text ?? ""),
    data: useSignal(JSON.stringify(sampleData(template.variables), null, 2)),
  };
  const { name, subject, html, text, data } = source;
  const changed =
    name.value !== template.name ||
    subject.value !== template.subject ||
    html.value !== (template.html ?? "") ||
    text.value !== (template.text ?? "");
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
      <Form class="form" task={task} onSubmit={save} fields={FIELDS}>
        <TextField label="Name" name="name" value={name} task={task} />
        <TextField label="Subject" name="subject" value={subject} task={task} />
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
            <TextArea label="HTML" labelHidden name="html" value={html} task={task} rows={20} code />
          ) : tab.value === "text" ? (
            <TextArea label="Text" labelHidden name="text" value={text} task={task} rows={20} code />
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
      <Rendering source={source} onMissing={addMissing} />
    </div>
  );
}
