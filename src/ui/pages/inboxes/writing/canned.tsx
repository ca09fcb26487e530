import { useEffect, useRef } from "preact/hooks";
import { get, post } from "../../../api/client.ts";
import { useResource } from "../../../api/resource.ts";
import type { Page, Rendered, Template } from "../../../api/types.ts";
import { ChoiceDialog } from "../../../controls/choice-dialog.tsx";
import { fieldValue } from "../../../controls/form.tsx";
import { Problem } from "../../../controls/problem.tsx";
import { useTask } from "../../../controls/task.ts";
import { textOf } from "../../../state/draft-record.ts";
import type { ReplyDraft } from "../../../state/reply-draft.ts";
import { parseData } from "../../../words/sample-data.ts";
import { OFFERED, TemplateData } from "../../messages/template.tsx";

interface ChoiceProps {
  onChoose: (templateId: string) => void;
  onClose: () => void;
}

/** Asks for the template of a canned reply. */
export function CannedChoice({ onChoose, onClose }: ChoiceProps) {
  const list = useResource("templates to send", () =>
    get<Page<Template>>("/v1/templates", { limit: OFFERED }),
  );
  return (
    <ChoiceDialog
      title="Canned reply"
      placeholder="Find a template"
      none={list.loading.value ? "Reading the templates…" : "No template fits. The page Templates makes one."}
      choices={(list.value.value?.data ?? []).map(({ id, name, subject }) => ({
        id,
        text: name,
        hint: subject,
      }))}
      onChoose={onChoose}
      onClose={onClose}
    />
  );
}

/** The canned reply that is chosen, with a field for each variable. */
export function Canned({ draft, onInserted }: { draft: ReplyDraft; onInserted: () => void }) {
  const { templateId } = draft.fields.value;
  const task = useTask();
  const template = useResource(`template ${templateId}`, () =>
    get<Template>(`/v1/templates/${encodeURIComponent(templateId)}`),
  );
  const found = template.value.value;
  const insert = () =>
    task.run(async () => {
      if (found === null) return;
      const { subject, html, text } = found;
      const source = { subject, html, text, data: parseData(draft.fields.peek().data) ?? {} };
      const rendered = await post<Rendered>("/v1/templates/preview", source);
      const written = rendered.text ?? textOf(rendered.html ?? "");
      draft.write({ text: written.trimEnd(), templateId: "", data: "{}" });
      onInserted();
    });
  const box = useRef<HTMLElement>(null);
  // A template without variables is only text. Else the first empty field is next.
  const variables = found?.variables.length ?? null;
  useEffect(() => {
    if (variables === 0) void insert();
    const fields = [...(box.current?.querySelectorAll<HTMLInputElement>("input") ?? [])];
    (fields.find(({ value }) => value === "") ?? fields[0])?.focus();
  }, [variables]);
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter in a field would send it.
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    void insert();
  };
  return (
    <section class="canned" aria-label="Canned reply" ref={box} onKeyDown={onKeyDown}>
      <p class="strong">{found?.name}</p>
      <TemplateData key={templateId} templateId={templateId} data={fieldOf(draft, "data")} />
      <Problem error={task.error.value} />
      <div class="reply-tools">
        <button
          type="button"
          class="button small"
          disabled={task.busy.value || found === null}
          onClick={() => void insert()}
        >
          Insert as text
        </button>
        <button
          type="button"
          class="button bare small"
          onClick={() => draft.write({ templateId: "", data: "{}" })}
        >
          Remove
        </button>
      </div>
    </section>
  );
}

/** Returns one of a draft's strings as a field shows and changes it. */
export function fieldOf(draft: ReplyDraft, name: "to" | "cc" | "bcc" | "text" | "data") {
  return fieldValue(
    () => draft.fields.value[name],
    (next) => draft.write({ [name]: next }),
  );
}
