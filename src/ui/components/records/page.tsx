import { useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { get, remove } from "../../api/client.ts";
import { isSeen, useLiveReload } from "../../api/live.ts";
import { usePages } from "../../api/pages.ts";
import { useResource } from "../../api/resource.ts";
import { every } from "../../browser/clock.ts";
import { Problem } from "../../controls/problem.tsx";
import { codeContext } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { navigate, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { capitalized } from "../../words/case.ts";
import { curlText } from "../../words/code.ts";
import { CreateLink, opensForm } from "../create-link.tsx";
import { Detail } from "../detail.tsx";
import { EmptyState } from "../empty.tsx";
import { List } from "../list.tsx";
import { Page } from "../page.tsx";
import { DeleteButton } from "./delete.tsx";

interface Row {
  id: string;
  name: string;
}

/** Milliseconds between two reads of what moves, and minimum time between those after events. */
const MOVING_MS = 2_000;
const EVENTS_MS = 1_500;

/** The window that makes a record, or changes one. */
export interface RecordFormProps<Item> {
  /** Null: it makes another one. */
  record: Item | null;
  onClose: () => void;
  onSaved: (record: Item) => void;
}

/** A record, and what is called when it has changed. */
export interface RecordProps<Item> {
  record: Item;
  onChanged: (record: Item) => void;
}

/** A kind of records that has nothing but a list, a detail and a form. */
export interface RecordKind<Item extends Row> {
  /** In the plural: `Topics`. */
  title: string;
  /** In lower case: `topic`. */
  noun: string;
  /** Its path in the dashboard and in the API. */
  path: string;
  api: string;
  /** The scope of changes. */
  scope: string;
  heads: readonly string[];
  Cells: ComponentType<{ record: Item }>;
  Form: ComponentType<RecordFormProps<Item>>;
  /** True if the form only makes records. */
  isFixed?: true;
  /** Returns whether a record can be deleted. Absent: always. */
  mayGo?: (record: Item) => boolean;
  /** Its own buttons, before those of all kinds. */
  Actions?: ComponentType<RecordProps<Item>>;
  /** Returns whether a record changes by itself soon, so that it is read again every few seconds. */
  moves?: (record: Item) => boolean;
  /** The detail below its name. */
  Body: ComponentType<RecordProps<Item>>;
  /** Sentences that say what is deleted with a record. */
  loses: string;
  /** The purpose of such a record, and the body of a first one. */
  about: string;
  first: object;
  /** What stands next to the list while no record is open. */
  hint: string;
  /** Between the title and the buttons. */
  tools?: ComponentChildren;
}

interface RecordsProps<Item extends Row> {
  kind: RecordKind<Item>;
  selected: string | null;
}

/** The records of a kind, and next to them the one that the path names. */
export function RecordsPage<Item extends Row>({ kind, selected }: RecordsProps<Item>) {
  const { title, noun, path, api, scope, heads, Cells, Form, tools } = kind;
  const pages = usePages<Item>(api, {}, ({ id }) => id);
  const close = () => navigate(path);
  useMoving(
    pages.rows.value.some((row) => kind.moves?.(row) === true),
    pages.refresh,
  );
  useKey("Escape", () => selected !== null && close());
  const create = `Create ${noun}`;
  return (
    <Page
      title={title}
      layout="panes"
      tools={tools}
      actions={<CreateLink scope={scope} text={create} plus />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label={title}
          pages={pages}
          columns="columns-messages columns-people"
          heads={heads}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `${path}/${id}`}
          cells={(record) => <Cells record={record} />}
          empty={
            <EmptyState
              action={<CreateLink scope={scope} text={`Create a ${noun}`} />}
              command={curlText("POST", api, kind.first, codeContext())}
            >
              {kind.about}
            </EmptyState>
          }
        />
        {selected === null ? (
          <p class="split-hint quiet">{kind.hint}</p>
        ) : (
          <RecordDetail
            key={selected}
            kind={kind}
            id={selected}
            onClose={close}
            onChanged={pages.refresh}
            onDeleted={(record) => {
              pages.drop(record);
              close();
            }}
          />
        )}
      </div>
      {opensForm(scope) ? (
        <Form
          record={null}
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onSaved={({ id }) => {
            pages.refresh();
            navigate(`${path}/${id}`, { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

interface DetailProps<Item extends Row> {
  kind: RecordKind<Item>;
  id: string;
  onClose: () => void;
  onChanged: () => void;
  onDeleted: (record: Item) => void;
}

function RecordDetail<Item extends Row>({ kind, id, onClose, onChanged, onDeleted }: DetailProps<Item>) {
  const path = `${kind.api}/${encodeURIComponent(id)}`;
  const record = useResource(`${kind.noun} ${id}`, () => get<Item>(path));
  const found = record.value.value;
  useMoving(found !== null && kind.moves?.(found) === true, record.reload);
  useLiveReload(record.reload, EVENTS_MS, () => kind.moves !== undefined);
  const changed = (next: Item) => {
    record.set(next);
    onChanged();
  };
  return (
    <Detail
      name={capitalized(kind.noun)}
      id={id}
      busy={record.loading.value}
      onClose={onClose}
      actions={
        found === null || !can(kind.scope) ? null : (
          <Actions
            kind={kind}
            record={found}
            onChanged={changed}
            onDelete={async () => {
              await remove(path);
              onDeleted(found);
            }}
          />
        )
      }
    >
      <Problem error={record.error.value} onRetry={record.reload} />
      {found === null ? null : <kind.Body record={found} onChanged={changed} />}
    </Detail>
  );
}

/** Reads again every few seconds while something moves. */
function useMoving(moves: boolean, reload: () => void): void {
  useEffect(() => {
    if (moves) return every(MOVING_MS, () => isSeen() && reload());
  }, [moves, reload]);
}

interface ActionsProps<Item extends Row> {
  kind: RecordKind<Item>;
  record: Item;
  onChanged: (record: Item) => void;
  onDelete: () => Promise<void>;
}

function Actions<Item extends Row>({ kind, record, onChanged, onDelete }: ActionsProps<Item>) {
  const edits = useSignal(false);
  const close = () => {
    edits.value = false;
  };
  const saved = (next: Item) => {
    onChanged(next);
    close();
  };
  return (
    <>
      {kind.Actions === undefined ? null : <kind.Actions record={record} onChanged={onChanged} />}
      {kind.isFixed ? null : (
        <button type="button" class="button small" onClick={() => (edits.value = true)}>
          Edit
        </button>
      )}
      {kind.mayGo?.(record) === false ? null : (
        <DeleteButton name={record.name} noun={kind.noun} onDelete={onDelete}>
          {kind.loses}
        </DeleteButton>
      )}
      {edits.value ? <kind.Form record={record} onClose={close} onSaved={saved} /> : null}
    </>
  );
}
