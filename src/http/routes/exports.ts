import { Type } from "@sinclair/typebox";
import { addressKey } from "../../core/addresses.ts";
import { requiredAddress } from "../../core/messages/address-input.ts";
import { readRecord } from "../../flows/read/record.ts";
import type { RowPlace } from "../../store/engine/place.ts";
import {
  auditNaming,
  messagesNaming,
  type WRITTEN,
  writtenNaming,
} from "../../store/erasures/erased-rows.ts";
import { nextProject } from "../../store/erasures/erasures.ts";
import { rowsNaming } from "../../store/imports/parts.ts";
import { auditEntries } from "../../store/installation/audit-log.ts";
import { findContacts } from "../../store/projects/contacts.ts";
import { findSuppressions } from "../../store/projects/suppressions.ts";
import { namedProject, projectOf } from "../access/project.ts";
import { rowOfAddress } from "../../store/rules/forward-addresses.ts";
import { getDraft } from "../../store/drafts/drafts.ts";
import { findListed } from "../../store/threads/listed-senders.ts";
import { getNote } from "../../store/threads/notes.ts";
import type { Db } from "../../store/engine/client.ts";
import { raw } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { accountRoute, type Route } from "../routing/route.ts";
import { EMAIL } from "../routing/schemas.ts";
import { NDJSON } from "../routing/whole-list.ts";
import { showMessage } from "../views/message.ts";
import { showContact } from "../views/contact.ts";
import { showAuditEntry } from "./projects/audit-log.ts";
import { showDraft } from "../views/draft.ts";
import { showListed } from "./emails/listed-senders.ts";
import { showNote } from "./threads/notes.ts";
import { showForwardAddress } from "./forward-addresses.ts";
import { showSuppression } from "./suppressions.ts";

/** Memory that an export holds while it is sent, bytes: one message with its text. */
const HELD = 8 * 1024 * 1024;
/** Rows read at a time. */
const ROWS_PER_READ = 200;
/** Parts of imported files read at a time, of some hundred KiB each. */
const PARTS_PER_READ = 20;

/** Returns the route that answers a person's question what is known about them. It finds what an erasure removes. */
export function exportRoutes(deps: Parts): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/exports",
      operationId: "exportAddress",
      scope: "data:export",
      costly: "content",
      summary: "Export what is stored about an address",
      description:
        "One JSON object per line: `{kind, senderId, data}`. Kinds: `message` (as GET /v1/emails/{id} shows it, for every message that is from or to the address or names it in its header), `contact`, `suppression`, `import` (a row of an imported file), `listed_sender` (an entry of an allow or block list), `forward_address`, `note` and `draft` (which name it, or are in a thread with it) and `audit`. From the project, or from all projects of an account-wide key that names none. Files and raw messages are at the paths of each message. The webhook log is left out, because it repeats events.",
      query: Type.Object({ email: Type.String({ maxLength: 320, ...EMAIL }) }),
      answers: { 200: NDJSON },
      errors: ["not_found", "service_unavailable"],
      async handle({ principal, query, request, now }) {
        const key = addressKey(requiredAddress(query.email, "email"));
        const project = await projectOf(deps.db, principal, namedProject(request.headers));
        const pieces = linesOf(deps, { ...principal, senderId: project?.id ?? null }, key, now);
        const owner = project?.id ?? principal.accountId;
        const size = Number.POSITIVE_INFINITY;
        return raw(await deps.handOut(owner, { size, held: HELD, pieces }), NDJSON);
      },
    }),
  ];
}

interface Place {
  accountId: string;
  /** Null: all projects of the account. */
  senderId: string | null;
}

async function* linesOf(
  deps: Parts,
  { accountId, senderId }: Place,
  key: string,
  now: number,
): AsyncGenerator<Uint8Array> {
  let project = senderId ?? (await nextProject(deps.db, accountId, ""));
  while (project !== null) {
    for await (const { kind, data } of itemsOf(deps, project, key, now))
      yield Buffer.from(`${JSON.stringify({ kind, senderId: project, data })}\n`);
    project = senderId === null ? await nextProject(deps.db, accountId, project) : null;
  }
}

interface Item {
  kind:
    | "message"
    | "contact"
    | "suppression"
    | "listed_sender"
    | "forward_address"
    | "import"
    | "note"
    | "draft"
    | "audit";
  data: object;
}

async function* itemsOf(deps: Parts, senderId: string, key: string, now: number): AsyncGenerator<Item> {
  const { db } = deps;
  for (const contact of (await findContacts(db, senderId, [key])).values())
    yield { kind: "contact", data: showContact(contact) };
  for (const suppression of (await findSuppressions(db, senderId, [key], now)).values())
    yield { kind: "suppression", data: showSuppression(suppression) };
  for (const listed of await findListed(db, senderId, key))
    yield { kind: "listed_sender", data: showListed(listed) };
  const forward = await rowOfAddress(db, senderId, key);
  if (forward !== null) yield { kind: "forward_address", data: showForwardAddress(forward) };
  yield* importedRows(db, senderId, key);
  let after: string | undefined = "";
  while (after !== undefined) {
    const read = await messagesNaming(db, senderId, key, after, ROWS_PER_READ);
    for (const { id, isNamed } of read) {
      const record = isNamed ? await readRecord(deps, senderId, id) : null;
      if (record !== null) yield { kind: "message", data: showMessage(record) };
    }
    after = read.length < ROWS_PER_READ ? undefined : read.at(-1)?.id;
  }
  yield* writtenItems(db, senderId, key);
  let place: RowPlace = null;
  do {
    const { seqs, next } = await auditNaming(db, senderId, key, place, ROWS_PER_READ);
    for (const entry of await auditEntries(db, seqs)) yield { kind: "audit", data: showAuditEntry(entry) };
    place = next;
  } while (place !== null);
}

/** Readers of the tables that the team writes. Null: the row was deleted since. */
const WRITTEN_ITEMS: Readonly<
  Record<keyof typeof WRITTEN, (db: Db, senderId: string, id: string) => Promise<Item | null>>
> = {
  async thread_notes(db, senderId, id) {
    const note = await getNote(db, senderId, id);
    return note === null ? null : { kind: "note", data: showNote(note) };
  },
  async drafts(db, senderId, id) {
    const draft = await getDraft(db, senderId, id);
    return draft === null ? null : { kind: "draft", data: showDraft(draft) };
  },
};

/** Yields the notes and drafts that name the address, or are in a thread in which it takes part. */
async function* writtenItems(db: Db, senderId: string, key: string): AsyncGenerator<Item> {
  for (const table of Object.keys(WRITTEN_ITEMS) as (keyof typeof WRITTEN)[]) {
    let after: string | null = "";
    while (after !== null) {
      const about = { senderId, key, taking: true };
      const found = await writtenNaming(db, table, about, after, ROWS_PER_READ);
      for (const id of found.ids) {
        const item = await WRITTEN_ITEMS[table](db, senderId, id);
        if (item !== null) yield item;
      }
      after = found.next;
    }
  }
}

/** Rows of imported files with the address, as they are stored. */
async function* importedRows(db: Parts["db"], senderId: string, key: string): AsyncGenerator<Item> {
  let place: RowPlace = null;
  do {
    const { found, next } = await rowsNaming(db, senderId, key, place, PARTS_PER_READ);
    for (const { importId, rows } of found)
      for (const row of rows) yield { kind: "import", data: { importId, row } };
    place = next;
  } while (place !== null);
}
