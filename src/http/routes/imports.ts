import { type Static, Type } from "@sinclair/typebox";
import { AppError, existing } from "../../core/errors.ts";
import { allows, requireScope } from "../../core/scopes.ts";
import type { Parts } from "../routing/parts.ts";
import { MAX_COLUMNS, MAX_ROW_OCTETS } from "../../flows/imports/csv-rows.ts";
import { FORMS } from "../../flows/imports/forms.ts";
import { resultsOf } from "../../flows/imports/results.ts";
import {
  FILE_TYPES,
  MAX_IN_PROGRESS,
  type Preview,
  previewUpload,
  takeUpload,
  type Upload,
} from "../../flows/imports/upload.ts";
import { getImport, type Import, type ImportCounts, type ImportKind } from "../../store/imports/imports.ts";
import type { DoneRow } from "../../store/imports/parts.ts";
import { SUPPRESSION_REASONS } from "../../store/projects/suppressions.ts";
import { exampleId } from "../openapi/examples.ts";
import { accepted, ok } from "../routing/answer.ts";
import { type ProjectContext, projectRoute, type Route } from "../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../routing/schemas.ts";
import { AS_CSV, pageOrWhole } from "../routing/whole-list.ts";
import { checkedItem } from "./contact-batch.ts";

/** Largest file that is imported, bytes: some million rows. */
export const MAX_FILE_BYTES = 256 * 1024 * 1024;

const OUTCOMES = ["created", "updated", "unchanged", "failed"] as const;
const COUNTS = {
  created: Type.Integer(),
  updated: Type.Integer(),
  unchanged: Type.Integer({ description: "0 for a key that may not read the list: those are in `updated`." }),
  failed: Type.Integer(),
};
const RowView = Type.Object(
  {
    row: Type.Integer({ description: "Its number in the file, with the heading as row 1.", examples: [2] }),
    email: Type.String(),
    outcome: OneOf(OUTCOMES),
    error: Nullable(Type.String({ description: "Why the row failed." })),
  },
  { title: "ImportRow" },
);
const ImportView = Type.Object(
  {
    id: Type.String({ examples: [exampleId("imp")] }),
    kind: OneOf(["contacts", "suppressions"]),
    status: OneOf(["running", "done"]),
    rows: Type.Integer({ description: "Rows of the file." }),
    ...COUNTS,
    resultUrl: Type.String({
      description: "The path that lists what became of each row.",
      examples: [`/v1/imports/${exampleId("imp")}/rows`],
    }),
    createdAt: Timestamp,
    endedAt: Nullable(Timestamp),
  },
  { title: "Import" },
);
const PreviewView = Type.Object(
  {
    form: OneOf(FORMS, "The product that wrote the file, by its heading."),
    columns: Type.Array(
      Type.Object({
        name: Type.String(),
        field: Nullable(
          Type.String({
            description:
              "What it is imported as, such as `email` or `properties.plan`. Null: it is left out.",
          }),
        ),
      }),
    ),
    rows: Type.Integer(),
    ...COUNTS,
    faults: Type.Array(RowView, { description: "The first rows that would fail." }),
  },
  { title: "ImportPreview" },
);
const Begun = Type.Object({ id: Type.String({ examples: [exampleId("imp")] }) }, { title: "BegunImport" });

const PREVIEW = {
  preview: Type.Optional(OneOf(["1"], "Answers 200 with what the import would do, and changes nothing.")),
};
const REASON = {
  reason: Type.Optional(
    OneOf(SUPPRESSION_REASONS, "The reason of rows whose file has none. Default: `manual`."),
  ),
};
const FILE = `The body is a table (\`text/csv\`) or one JSON object per line (\`application/x-ndjson\`), in UTF-8 and of at most 256 MiB, with ${MAX_COLUMNS} columns and ${MAX_ROW_OCTETS / 1024} KiB per row. If it cannot be read to its end, nothing is imported. A project has at most ${MAX_IN_PROGRESS} imports in progress.`;

/** Words and query of the two imports in the API document. */
const KINDS = {
  contacts: {
    operationId: "importContacts",
    summary: "Import contacts from a file",
    description: `The columns are those of the list of contacts, of which only \`email\` is needed, and the names of properties; files of Resend, SendGrid and Mailgun are recognized by their headings. Empty cells change nothing. Only \`subscribed\` = \`true\` in a file of ours subscribes an unsubscribed contact again. ${FILE}`,
    query: Type.Object(PREVIEW),
  },
  suppressions: {
    operationId: "importSuppressions",
    summary: "Import suppressed addresses from a file",
    description: `The columns are those of the list of suppressions, of which only \`email\` is needed; files of SendGrid, Mailgun, Postmark and Amazon SES are recognized by their headings. An entry on the list can become longer, but not shorter. ${FILE}`,
    query: Type.Object({ ...PREVIEW, ...REASON }),
  },
} as const;

type Deps = Pick<Parts, "db" | "clock" | "quotas" | "handOut">;

/** Returns the routes of imports. */
export function importRoutes(deps: Deps): Route[] {
  return [importRoute(deps, "contacts"), importRoute(deps, "suppressions"), getRoute(deps), rowsRoute(deps)];
}

function importRoute(deps: Deps, kind: ImportKind): Route {
  const { operationId, summary, description, query } = KINDS[kind];
  return projectRoute({
    method: "POST",
    path: `/v1/${kind}/import`,
    operationId,
    stores: { limitedBy: "handler" },
    costly: "uploads",
    summary,
    description,
    scope: `${kind}:write`,
    query: query as (typeof KINDS)["suppressions"]["query"],
    uploads: FILE_TYPES,
    bodyLimit: MAX_FILE_BYTES,
    answers: { 200: PreviewView, 202: Begun },
    errors: ["conflict", "validation_error", "payload_too_large"],
    async handle(context) {
      const { senderId, project, principal, query: asked, record } = context;
      const file = { ...uploadOf(context), kind, senderId, project, checkContact, reason: asked.reason };
      if (asked.preview === undefined)
        return accepted({ id: await takeUpload(deps, file, (id) => record(accepted({ id }))) });
      const reads = allows(principal.scopes, `${kind}:read`);
      return ok(showPreview(await previewUpload(deps, file), reads));
    },
  });
}

function uploadOf({
  upload,
}: Pick<ProjectContext<"", never, never>, "upload">): Pick<Upload, "type" | "pieces"> {
  if (upload === null) throw new Error("the route takes uploads");
  return { type: upload.type as Upload["type"], pieces: upload.pieces };
}

function checkContact(item: unknown): AppError | null {
  const checked = checkedItem(item);
  return checked instanceof AppError ? checked : null;
}

/** A key that may not read the list does not see which rows were there already. */
function showCounts({ created, updated, unchanged, failed }: ImportCounts, reads: boolean) {
  return {
    created,
    updated: reads ? updated : updated + unchanged,
    unchanged: reads ? unchanged : 0,
    failed,
  };
}

function showPreview(preview: Preview, reads: boolean): Static<typeof PreviewView> {
  return { ...preview, ...showCounts(preview, reads), faults: preview.faults.map(showRow) };
}

function showRow([row, email, outcome, error]: DoneRow): Static<typeof RowView> {
  return { row, email, outcome, error };
}

function showImport(found: Import): Static<typeof ImportView> {
  const { id, kind, status, rows, created, updated, unchanged, failed, createdAt, endedAt } = found;
  return {
    id,
    kind,
    status: status === "done" ? status : "running",
    rows,
    created,
    updated,
    unchanged,
    failed,
    resultUrl: `/v1/imports/${id}/rows`,
    createdAt: showTime(createdAt),
    endedAt: showTime(endedAt),
  };
}

const READ =
  "Takes the scope that reads the list it went into: `contacts:read` or `suppressions:read`. An import is kept for 7 days.";

async function readImport(
  { db }: Deps,
  {
    senderId,
    params,
    principal,
  }: Pick<ProjectContext<"/:id", never, never>, "senderId" | "params" | "principal">,
): Promise<Import> {
  const found = existing("import", await getImport(db, senderId, params.id));
  requireScope(principal.scopes, `${found.kind}:read`);
  return found;
}

function getRoute(deps: Deps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/imports/:id",
    operationId: "getImport",
    summary: "Get an import",
    description: `Its state, and what became of the rows so far. ${READ}`,
    scope: null,
    answers: { 200: ImportView },
    errors: ["not_found"],
    async handle(context) {
      return ok(showImport(await readImport(deps, context)));
    },
  });
}

const ROW_COLUMNS = ["row", "email", "outcome", "error"] as const;

function rowsRoute(deps: Deps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/imports/:id/rows",
    operationId: "listImportRows",
    summary: "List what became of the rows of an import",
    description: `In the order of the file, as far as it is imported. ${READ} ${AS_CSV}`,
    scope: null,
    query: Type.Object({
      ...PAGE_QUERY,
      outcome: Type.Optional(OneOf(OUTCOMES, "Only these rows.")),
    }),
    answers: { 200: PageOf(RowView) },
    errors: ["not_found"],
    async handle(context) {
      const { request, senderId, query, page } = context;
      const { id: importId } = await readImport(deps, context);
      return pageOrWhole(
        deps,
        { request, page },
        {
          owner: senderId,
          read: (after, take) => resultsOf(deps.db, { senderId, importId }, after, take, query.outcome),
          show: ({ row }) => showRow(row),
          position: ({ place }) => place,
          columns: ROW_COLUMNS,
        },
      );
    },
  });
}
