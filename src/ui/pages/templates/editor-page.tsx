import { useSignal } from "@preact/signals";
import { get, remove } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Template } from "../../api/types.ts";
import { Confirm } from "../../controls/dialog.tsx";
import { Id } from "../../controls/copy.tsx";
import { useTask } from "../../controls/task.ts";
import { Page } from "../../components/page.tsx";
import { Problem } from "../../controls/problem.tsx";
import { navigate } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { Editor } from "./editor.tsx";

/** The page of one template. */
export function EditorPage({ id }: { id: string }) {
  const path = `/v1/templates/${encodeURIComponent(id)}`;
  const template = useResource(`template ${id}`, () => get<Template>(path));
  const found = template.value.value;
  return (
    <Page
      title={found?.name ?? "Template"}
      tools={<Id id={id} what="template id" />}
      actions={
        <>
          <a class="button" href="/templates">
            All templates
          </a>
          {found === null || !can("templates:write") ? null : <Delete template={found} path={path} />}
        </>
      }
    >
      <Problem error={template.error.value} onRetry={template.reload} />
      {found === null ? null : <Editor template={found} path={path} onSaved={template.set} />}
    </Page>
  );
}

function Delete({ template: { name }, path }: { template: Template; path: string }) {
  const open = useSignal(false);
  const task = useTask();
  const erase = async () => {
    if (await task.run(() => remove(path))) navigate("/templates");
  };
  return (
    <>
      <button type="button" class="button" onClick={() => (open.value = true)}>
        Delete
      </button>
      {open.value ? (
        <Confirm
          title={`Delete ${name}?`}
          verb="Delete template"
          busy={task.busy.value}
          onConfirm={() => void erase()}
          onClose={() => (open.value = false)}
        >
          <p>
            The template is deleted, and sends that name it are refused. Messages that wait to be filled with
            it fail.
          </p>
          <Problem error={task.error.value} />
        </Confirm>
      ) : null}
    </>
  );
}
