import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post, type Query, send } from "../../api/client.ts";
import type { Import, ImportPreview } from "../../api/types.ts";
import { every } from "../../browser/clock.ts";
import { saveFile } from "../../browser/save.ts";
import { Dialog } from "../../controls/dialog.tsx";
import { Field } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { counted } from "../../words/amounts.ts";

/** Milliseconds between two reads of an import in progress. */
const READ_EVERY_MS = 1000;

/** A list that files go into and come out of. */
type ListName = "contacts" | "suppressions";

/** The buttons that save a list as a file, and that open its import. */
export function FileButtons({ list, filter }: { list: ListName; filter: Query }) {
  const task = useTask();
  const save = () => void task.run(() => saveTable(`${list}.csv`, `/v1/${list}`, filter));
  return (
    <>
      <Problem error={task.error.value} />
      <button type="button" class="button" disabled={task.busy.value} onClick={save}>
        Export
      </button>
      {can(`${list}:write`) ? (
        <a class="button" href={urlWith({ import: "1" })}>
          Import
        </a>
      ) : null}
    </>
  );
}

/** Saves what the API answers as a table. */
export async function saveTable(name: string, path: string, query: Query = {}): Promise<void> {
  const answer = await send("GET", path, { query, accept: "text/csv" });
  saveFile(name, "text/csv", await answer.blob());
}

/** The window of an import, if the URL asks for it: first a file with its preview, then the result. */
export function ImportDialog({ list, onImported }: { list: ListName; onImported: () => void }) {
  const asked = query.value.get("import");
  const to = (value: string | null) => navigate(urlWith({ import: value }), { replace: true });
  if (asked === null) return null;
  if (asked !== "1") return <Result id={asked} onDone={onImported} onClose={() => to(null)} />;
  if (!can(`${list}:write`)) return null;
  return <Choose list={list} onBegun={to} onClose={() => to(null)} />;
}

interface ChooseProps {
  list: ListName;
  onBegun: (id: string) => void;
  onClose: () => void;
}

function Choose({ list, onBegun, onClose }: ChooseProps) {
  const task = useTask();
  const file = useSignal<Blob | null>(null);
  const found = useSignal<ImportPreview | null>(null);
  const path = `/v1/${list}/import`;
  const choose = (chosen: File | undefined) =>
    void task.run(async () => {
      found.value = null;
      file.value = chosen === undefined ? null : withType(chosen);
      if (file.value !== null)
        found.value = await post<ImportPreview>(path, undefined, {
          file: file.value,
          query: { preview: 1 },
        });
    });
  const begin = async () => {
    if (file.value === null) return;
    onBegun((await post<{ id: string }>(path, undefined, { file: file.value })).id);
  };
  return (
    <FormDialog
      title={`Import ${list}`}
      verb={`Import ${list}`}
      task={task}
      incomplete={found.value === null}
      onSubmit={begin}
      onClose={onClose}
    >
      <Field
        label="File"
        name="file"
        hint="A table (CSV) or one JSON object per line, in UTF-8 and of at most 256 MiB. Lists of SendGrid, Mailgun, Postmark, SES and Resend are recognized."
      >
        {(attributes) => (
          <input
            {...attributes}
            type="file"
            accept=".csv,.txt,.ndjson,.jsonl"
            onChange={(event) => choose(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      {task.busy.value ? <p role="status">Reading the file…</p> : null}
      {found.value === null ? null : <Preview list={list} found={found.value} />}
    </FormDialog>
  );
}

/** Returns the file with the type that the API knows. Browsers name it by the programs that are installed. */
function withType(file: File): Blob {
  const isLines = /\.(?:ndjson|jsonl)$/i.test(file.name);
  return file.slice(0, file.size, isLines ? "application/x-ndjson" : "text/csv");
}

function Preview({ list, found }: { list: ListName; found: ImportPreview }) {
  const { form, columns, rows, faults } = found;
  const left = columns.filter(({ field }) => field === null).map(({ name }) => name);
  return (
    <section aria-label="Preview">
      <p role="status">
        {form === "other" ? "" : `A file of ${NAMES[form]}. `}
        {counted(rows, "row")}: {countsText(found)}.
      </p>
      {left.length === 0 ? null : (
        <p class="quiet">
          Left out: {left.join(", ")}.
          {list === "contacts" ? (
            <>
              {" "}
              A column goes into the <a href="/properties">property</a> of its name, once there is one.
            </>
          ) : null}
        </p>
      )}
      {faults.length === 0 ? null : <Faults rows={faults} />}
    </section>
  );
}

const NAMES = {
  postrider: "Postrider",
  resend: "Resend",
  sendgrid: "SendGrid",
  mailgun: "Mailgun",
  postmark: "Postmark",
  ses: "Amazon SES",
} as const;

function countsText({ created, updated, unchanged, failed }: ImportPreview | Import): string {
  return `${created} new, ${updated} changed, ${unchanged} unchanged, ${failed} with a fault`;
}

function Faults({ rows }: { rows: ImportPreview["faults"] }) {
  return (
    <ul>
      {rows.map(({ row, email, error }) => (
        <li key={row}>
          Row {row}, {email === "" ? "no address" : email}: {error}
        </li>
      ))}
    </ul>
  );
}

interface ResultProps {
  id: string;
  onDone: () => void;
  onClose: () => void;
}

function Result({ id, onDone, onClose }: ResultProps) {
  const task = useTask();
  const found = useSignal<Import | null>(null);
  const read = () => {
    if (found.peek()?.status === "done") return;
    void task.run(async () => {
      found.value = await get<Import>(`/v1/imports/${id}`);
      if (found.value.status === "done") onDone();
    });
  };
  useEffect(() => {
    read();
    return every(READ_EVERY_MS, read);
  }, [id]);
  const save = () => void task.run(() => saveTable("import.csv", `/v1/imports/${id}/rows`));
  const shown = found.value;
  return (
    <Dialog title="Import" onClose={onClose}>
      <div class="dialog-body form">
        <Problem error={task.error.value} />
        {shown === null ? null : (
          <p role="status">
            {shown.status === "done" ? "Done" : "In progress"}, {counted(shown.rows, "row")}:{" "}
            {countsText(shown)}.
          </p>
        )}
        <p class="quiet">The results are kept for 7 days.</p>
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="button" class="button primary" disabled={shown?.status !== "done"} onClick={save}>
            Save results
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
