import { useSignal } from "@preact/signals";
import { get, patch, post, remove } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Broadcast, Template } from "../../api/types.ts";
import { Page } from "../../components/page.tsx";
import { DeleteButton } from "../../components/records/delete.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Form } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { navigate } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { unsaved, useUnsaved } from "../../state/unsaved.ts";
import { type Letter, LetterPreview } from "./preview.tsx";
import { Check } from "../messages/check.tsx";
import { TestSend } from "../messages/test-send.tsx";
import { Fields } from "./fields.tsx";
import { Links } from "./links.tsx";
import { SendDialog } from "./send.tsx";
import { bodyOf, FIELDS, type Values, valuesOf } from "./values.ts";

interface DraftProps {
  broadcast: Broadcast;
  onChanged: (broadcast: Broadcast) => void;
}

/** The page of a draft: what it says at the left, and how a reader sees it at the right. */
export function DraftPage({ broadcast, onChanged }: DraftProps) {
  const { id, name } = broadcast;
  const path = `/v1/broadcasts/${encodeURIComponent(id)}`;
  const saved = valuesOf(broadcast);
  const draft = useSignal<Values>({ ...saved, ...unsaved<keyof Values>(`broadcast ${id}`) });
  const values = draft.value;
  const changed = FIELDS.some((field) => values[field] !== saved[field]);
  const task = useTask();
  const sending = useSignal(false);
  const tab = useSignal("preview");
  useUnsaved(`broadcast ${id}`, changed, values);
  const mayWrite = can("audience:write");
  const maySend = mayWrite && can("emails:send");
  const save = async () => {
    const next = await patch<Broadcast>(path, bodyOf(values));
    draft.value = valuesOf(next);
    onChanged(next);
  };
  const sendTest = async (to: string) => {
    if (changed) await save();
    const { messages } = await post<{ messages: { id: string }[] }>(`${path}/test`, { to: [to] });
    return messages[0]?.id ?? "";
  };
  const erase = async () => {
    await remove(path);
    navigate("/broadcasts");
  };
  const send = () =>
    void task.run(async () => {
      if (changed) await save();
      sending.value = true;
    });
  return (
    <Page
      title={name}
      actions={
        <>
          <a class="button" href="/broadcasts">
            All broadcasts
          </a>
          {mayWrite ? (
            <>
              <DeleteButton name={name} noun="broadcast" class="button" onDelete={erase}>
                The draft is deleted. Nobody got it.
              </DeleteButton>
              {maySend ? (
                <button type="button" class="button primary" disabled={task.busy.value} onClick={send}>
                  Send…
                </button>
              ) : null}
            </>
          ) : null}
        </>
      }
    >
      <div class="editor">
        <Form class="form" task={task} onSubmit={save}>
          <Fields values={values} set={(changes) => (draft.value = { ...draft.peek(), ...changes })} />
          {mayWrite ? (
            <footer class="editor-foot">
              <span class="quiet" role="status">
                {changed ? "Not saved yet." : "Saved."}
              </span>
              {maySend ? <TestSend onTest={sendTest} task={task} /> : null}
              <button type="submit" class="button" disabled={task.busy.value || !changed}>
                Save draft
              </button>
            </footer>
          ) : null}
        </Form>
        <Tabs
          label="View of the letter"
          tabs={[
            { id: "preview", label: "Preview" },
            { id: "check", label: "Check" },
          ]}
          selected={tab.value}
          onSelect={(id) => (tab.value = id)}
        >
          {tab.value === "preview" ? (
            <Side values={values} />
          ) : changed ? (
            <p class="quiet">Save the draft to check it.</p>
          ) : (
            <>
              <Check key={broadcast.updatedAt} path={`${path}/check`} />
              {mayWrite ? <Links key={`links ${broadcast.updatedAt}`} path={path} /> : null}
            </>
          )}
        </Tabs>
      </div>
      {sending.value ? (
        <SendDialog
          broadcast={broadcast}
          path={path}
          onSent={onChanged}
          onClose={() => {
            sending.value = false;
          }}
        />
      ) : null}
    </Page>
  );
}

/** The letter as a reader sees it, and what may keep it from its readers. */
function Side({ values }: { values: Values }) {
  const { templateId, subject, otherSubject, html, text } = values;
  const readers = { topicId: values.topicId, segmentId: values.segmentId === "" ? null : values.segmentId };
  const shown = { ...readers, subject, otherSubject, html, text };
  return templateId === "" ? (
    <LetterPreview {...shown} />
  ) : (
    <OfTemplate key={templateId} templateId={templateId} letter={shown} />
  );
}

interface OfTemplateProps {
  templateId: string;
  letter: Letter;
}

function OfTemplate({ templateId, letter }: OfTemplateProps) {
  const template = useResource(`template ${templateId}`, () =>
    get<Template>(`/v1/templates/${encodeURIComponent(templateId)}`),
  );
  const found = template.value.value;
  if (found === null) return <Problem error={template.error.value} onRetry={template.reload} />;
  const { subject, html, text } = found;
  return (
    <LetterPreview {...letter} subject={letter.subject || subject} html={html ?? ""} text={text ?? ""} />
  );
}
