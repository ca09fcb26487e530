import { Type } from "@sinclair/typebox";
import { AppError, invalid } from "../../../core/errors.ts";
import type { PropertyShape } from "../../../core/audience/properties.ts";
import { isObject } from "../../../core/validation.ts";
import type { CheckedRequest, Route } from "../../routing/route.ts";
import { propertyShapes } from "../../../store/audience/properties.ts";
import { listImports } from "../../../store/imports/imports.ts";
import type { Db } from "../../../store/engine/client.ts";
import { OneOf, showTime } from "../../routing/schemas.ts";
import {
  answeredBy,
  ID_PAGE,
  listRoute,
  type Operations,
  RESEND_PATH,
  rightsOf,
  translated,
} from "../form/translate.ts";

/** Largest form that is read, bytes: it is in memory as a whole. POST /v1/contacts/import takes larger files. */
export const MAX_FORM_BYTES = 4 * 1024 * 1024;

interface Shown {
  id: string;
  status: string;
  rows: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  createdAt: string;
  endedAt: string | null;
}

/** Resend's statuses of an import. None of ours waits, and rows fail one by one. */
const IN_STATUS = { queued: [], in_progress: ["running"], completed: ["done"], failed: [] } as const;

/** Returns the routes of imports of contacts. */
export function contactImportRoutes(operations: Operations, db: Db): Route[] {
  return [
    createRoute(operations, db),
    listRoute(operations, {
      path: "/contacts/imports",
      operation: "listContacts",
      summary: "List the imports of contacts of the last days",
      query: Type.Object({ ...ID_PAGE, status: Type.Optional(OneOf(Object.keys(IN_STATUS))) }),
      read({ senderId, query }, place, take) {
        const { status } = query as { status?: keyof typeof IN_STATUS };
        const asked = status === undefined ? (["running", "done"] as const) : IN_STATUS[status];
        return listImports(db, { senderId, kind: "contacts", statuses: asked }, place, take);
      },
      show: (imports) =>
        imports.map(({ createdAt, endedAt, ...rest }) =>
          showImport({ ...rest, createdAt: showTime(createdAt), endedAt: showTime(endedAt) }),
        ),
    }),
    translated(operations, {
      method: "GET",
      path: "/contacts/imports/:id",
      operation: "getImport",
      summary: "Get an import of contacts",
      answer: showImport,
    }),
  ];
}

function showImport({ id, status, rows, created, updated, unchanged, failed, createdAt, endedAt }: Shown) {
  return {
    object: "contact_import",
    id,
    status: status === "done" ? "completed" : "in_progress",
    created_at: createdAt,
    completed_at: endedAt,
    counts: { total: rows, created, updated, skipped: unchanged, failed },
  };
}

function createRoute(operations: Operations, db: Db): Route {
  const operation = "importContacts";
  return {
    ...rightsOf(operations, operation),
    method: "POST",
    path: `${RESEND_PATH}/contacts/imports`,
    operationId: "resend POST /contacts/imports",
    summary: "Import contacts from a CSV file",
    uploads: ["multipart/form-data"],
    bodyLimit: MAX_FORM_BYTES,
    answers: { 200: Type.Any() },
    undocumented: true,
    async handle(context) {
      const csv = await fileOf(db, context);
      const upload = { type: "text/csv", pieces: once(csv) };
      const show = ({ id }: { id: string }) => ({ object: "contact_import", id });
      return answeredBy(operations, operation, { ...context, upload }, {}, show);
    },
  };
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

/** Returns the table of a form, under the headings that its column map gives. */
async function fileOf(db: Db, { request, upload, senderId }: CheckedRequest): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of upload?.pieces ?? []) pieces.push(piece);
  const type = request.headers.get("content-type") ?? "";
  const form = await new Response(Buffer.concat(pieces), { headers: { "content-type": type } })
    .formData()
    .catch(() => {
      throw new AppError("invalid_request", "The body must be a form with a file.");
    });
  for (const name of ["segments", "topics"])
    if (form.has(name))
      throw invalid(name, "is not supported. Add the contacts with PATCH /contacts/{id} after the import.");
  if (form.get("on_conflict") === "skip")
    throw invalid("on_conflict", 'can only be "upsert". A cell that is empty changes nothing.');
  const file = form.get("file");
  if (file === null || typeof file === "string") throw invalid("file", "must be a CSV file.");
  const names = columnMap(form.get("column_map"), await propertyShapes(db, senderId ?? ""));
  return renamedColumns(await file.text(), names);
}

/** Returns the heading that each column of a column map gets, by the heading that it has. */
function columnMap(given: unknown, shapes: readonly PropertyShape[]): ReadonlyMap<string, string> {
  const map = typeof given === "string" ? parsed(given) : {};
  if (!isObject(map)) throw invalid("column_map", "must be an object as JSON.");
  const { properties, ...columns } = map;
  if (properties != null && !isObject(properties))
    throw invalid("column_map.properties", "must be an object of columns by the names of properties.");
  const mapped = Object.entries(properties ?? {}).map(([name, mapping]) => {
    if (!shapes.some((shape) => shape.name === name))
      throw invalid(
        `column_map.properties.${name}`,
        "names no property. Make it with POST /contact-properties.",
      );
    // A property may have the name of a field, such as `created`.
    return [String(isObject(mapping) ? mapping.column : mapping), `properties.${name}`] as const;
  });
  return new Map([
    ...Object.entries(columns).map(([name, column]) => [String(column), name] as const),
    ...mapped,
  ]);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function renamedColumns(csv: string, names: ReadonlyMap<string, string>): string {
  if (names.size === 0) return csv;
  const end = csv.search(/\r?\n|$/);
  const headings = csv
    .slice(0, end)
    .replace(/^\ufeff/, "")
    .split(",")
    .map((heading) => heading.trim().replace(/^"(.*)"$/, "$1"));
  return headings.map((heading) => names.get(heading) ?? heading).join(",") + csv.slice(end);
}
