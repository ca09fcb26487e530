import { usePages } from "../../api/pages.ts";
import type { Template } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { DeleteButton } from "../../components/records/delete.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { codeContext } from "../../state/installation.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { curlText } from "../../words/code.ts";
import { useSignal } from "@preact/signals";
import { post, get, remove } from "../../api/client.ts";
import { TextField } from "../../controls/form.tsx";
import { useResource } from "../../api/resource.ts";
import { Id } from "../../controls/copy.tsx";
import { Problem } from "../../controls/problem.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { draft, EMPTY_DRAFT } from "../../state/draft.ts";
import { Editor } from "./editor.tsx";

/** The templates of the project, or the editor of the one that the path names. */
export function TemplatesPage({ params: { id } }: PageProps) {
  return id === undefined ? <TemplateList /> : <EditorPage key={id} id={id} />;
}

function TemplateList() {
  const pages = usePages<Template>("/v1/templates", {}, ({ id }) => id);
  const create = <CreateLink scope="templates:write" text="Create template" plus />;
  return (
    <Page title="Templates" layout="panes" actions={create}>
      <div class="split">
        <List
          label="Templates"
          pages={pages}
          columns="columns-templates"
          heads={["Name", "Slug", "Subject", "Changed"]}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/templates/${id}`}
          cells={(template) => <Cells template={template} />}
          empty={<NoTemplates />}
        />
      </div>
      {opensForm("templates:write") ? (
        <NewTemplate
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onCreated={({ id }) => navigate(`/templates/${id}`, { replace: true })}
        />
      ) : null}
    </Page>
  );
}

function Cells({ template: { name, slug, subject, updatedAt } }: { template: Template }) {
  return (
    <>
      <span class="cut strong" dir="auto">
        {name}
      </span>
      <code class="cut quiet far-only">{slug}</code>
      <span class="cut quiet wide-only" dir="auto">
        {subject}
      </span>
      <RelativeTime at={updatedAt} />
    </>
  );
}

function NoTemplates() {
  const body = { name: "Welcome", subject: "Hello {{ name }}", html: FIRST_HTML };
  return (
    <EmptyState
      action={<CreateLink scope="templates:write" text="Create a template" />}
      command={curlText("POST", "/v1/templates", body, codeContext())}
    >
      A template is a message with placeholders, which each send fills with its own data.
    </EmptyState>
  );
}

/** Html that another template begins with. */
const FIRST_HTML = "<p>Hello {{ name }},</p>\n<p>welcome to Acme.</p>\n";
const FIRST_TEXT = "Hello {{ name }},\n\nwelcome to Acme.\n";

/** Creates a template with a short text, which the editor then opens. */
function NewTemplate({ onClose, onCreated }: MakerProps<Template>) {
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
    <FormDialog title="Create a template" verb="Create template" onSubmit={create} onClose={onClose}>
      <TextField
        label="Name"
        name="name"
        value={name}
        autoFocus
        placeholder="Order confirmation"
        hint="It begins with a short text, which you then change."
      />
    </FormDialog>
  );
}

/** The page of one template. */
function EditorPage({ id }: { id: string }) {
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
          {found === null || !can("emails:send") ? null : (
            <button type="button" class="button" onClick={() => sendWith(found)}>
              Send
            </button>
          )}
          {found === null || !can("templates:write") ? null : <Delete template={found} path={path} />}
        </>
      }
    >
      <Problem error={template.error.value} onRetry={template.reload} />
      {found === null ? null : <Editor template={found} path={path} onSaved={template.set} />}
    </Page>
  );
}

/** Opens the compose window with the template. */
function sendWith({ id }: Template): void {
  draft.value = { ...EMPTY_DRAFT, templateId: id };
  navigate("/messages?compose=1");
}

function Delete({ template: { name }, path }: { template: Template; path: string }) {
  const erase = async () => {
    await remove(path);
    navigate("/templates");
  };
  return (
    <DeleteButton name={name} noun="template" class="button" onDelete={erase}>
      The template is deleted, and sends that name it are refused. Messages that wait to be filled with it
      fail.
    </DeleteButton>
  );
}
