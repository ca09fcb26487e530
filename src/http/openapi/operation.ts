import { type TSchema, Type } from "@sinclair/typebox";
import { PROJECT_HEADER } from "../access/project.ts";
import { ERROR_STATUS } from "../routing/errors.ts";
import type { Route } from "../routing/route.ts";
import { shownText } from "../routing/shown.ts";
import { Warnings } from "../routing/schemas.ts";
import { errorsOf } from "./error-answers.ts";
import { exampleId, exampleOf } from "./examples.ts";
import { headersOfAnswer } from "./headers.ts";
import { tagOf } from "./tags.ts";

/** Examples of answers that are not JSON. */
const TEXTS: Readonly<Record<string, string>> = {
  "message/rfc822": "From: ana@mail.example.com\r\nTo: ben@example.com\r\nSubject: Hello\r\n\r\nHi Ben\r\n",
  "text/html": "<!doctype html>",
  "*/*": "the file's bytes",
  "image/gif": "GIF89a",
  "text/event-stream": `event: delivery\nid: ${exampleId("evt")}\ndata: {"type":"delivery","messageId":"${exampleId("msg")}"}\n\n`,
  "text/javascript": "// Scalar",
  "application/x-ndjson": `{"kind":"contact","senderId":"${exampleId("snd")}","data":{"email":"ada@example.com"}}\n`,
};

/** Examples of files that are uploaded, by content type. */
const FILES: Readonly<Record<string, string>> = {
  "text/csv": "email\r\nana@example.com\r\n",
  "application/x-ndjson": '{"email":"ana@example.com"}\n',
};

/** Prefixes of the ids in paths, by the path before the id. */
const PATH_IDS: Readonly<Record<string, string>> = {
  "/v1/emails": "msg",
  "/v1/emails/:id/attachments": "att",
  "/v1/inboxes": "inb",
  "/v1/threads": "thr",
  "/v1/domains": "dom",
  "/v1/templates": "tpl",
  "/v1/contacts": "con",
  "/v1/contact-properties": "prp",
  "/v1/topics": "top",
  "/v1/segments": "seg",
  "/v1/broadcasts": "bro",
  "/v1/api-keys": "key",
  "/v1/webhooks": "whk",
  "/v1/webhooks/:id/deliveries": "dlv",
  "/v1/senders": "snd",
  "/v1/imports": "imp",
};

const MayWarn = Type.Object(
  { warnings: Warnings },
  { title: "MayWarn", description: "What the answer to a write may also have." },
);

function contentOf(
  answer: TSchema | string,
  { body, examples, operationId }: Route,
): Record<string, unknown> {
  if (typeof answer === "string")
    return { [answer]: { schema: { type: "string" }, example: examples?.answer ?? TEXTS[answer] } };
  const schema = body === undefined ? answer : Type.Intersect([answer, MayWarn]);
  const example = examples?.answer ?? exampleOf(answer, operationId);
  return { "application/json": { schema, example } };
}

function responsesOf(route: Route): Record<string, unknown> {
  const answers = Object.entries(route.answers).map(([status, answer]) => [
    status,
    {
      description: route.summary,
      headers: headersOfAnswer(route, Number(status)),
      ...(answer === null ? {} : { content: contentOf(answer, route) }),
    },
  ]);
  const errors = errorsOf(route)
    .filter((type) => route.answers[ERROR_STATUS[type]] === undefined)
    .map((type) => [String(ERROR_STATUS[type]), { $ref: `#/components/responses/${type}` }]);
  return Object.fromEntries([...errors, ...answers]);
}

function parametersOf(route: Route): unknown[] {
  const path = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name: name ?? "",
    in: "path",
    required: true,
    description: pathText(name ?? "", route.path),
    schema: { type: "string" },
    example: pathExample(name ?? "", route.path),
  }));
  const required: readonly string[] = route.query?.required ?? [];
  const properties: Record<string, TSchema> = route.query?.properties ?? {};
  const query = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    schema,
  }));
  const headers: unknown[] = [];
  if (route.level === "project") headers.push({ $ref: "#/components/parameters/project" });
  if (route.method === "POST" && route.level !== "open")
    headers.push({ $ref: "#/components/parameters/idempotencyKey" });
  return [...path, ...query, ...headers];
}

/** Returns a route as the document shows it. */
export function operationOf(route: Route): Record<string, unknown> {
  const description = [route.description ?? "", shownText(route)].filter((text) => text !== "").join(" ");
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(description === "" ? {} : { description }),
    tags: [tagOf(route.path)],
    parameters: parametersOf(route),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: { "application/json": { schema: route.body, example: bodyExample(route, route.body) } },
          },
        }),
    ...(route.uploads === undefined ? {} : { requestBody: { required: true, content: fileContent(route) } }),
    responses: responsesOf(route),
    security:
      route.level === "open"
        ? []
        : [{ apiKey: [route.scope, route.alsoScope].filter((scope) => scope != null) }],
  };
}

function fileContent({ uploads = [] }: Route): Record<string, unknown> {
  return Object.fromEntries(
    uploads.map((type) => [type, { schema: { type: "string" }, example: FILES[type] }]),
  );
}

export const PARAMETERS = {
  project: {
    name: PROJECT_HEADER,
    in: "header",
    required: false,
    description:
      "Id or external id of the project. Required with an account-wide key. Alias: X-Service-Sender.",
    schema: { type: "string" },
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description: "For 24 hours, a request with the same key and body gets the first answer again.",
    schema: { type: "string", minLength: 1, maxLength: 256 },
  },
};

/** Returns what a path segment names. */
function pathText(name: string, path: string): string {
  if (path.startsWith("/v1/templates")) return "Id or slug of the template.";
  return prefixOf(name, path) === undefined ? "Taken from the link." : "The id.";
}

function pathExample(name: string, path: string): string {
  const prefix = prefixOf(name, path);
  return prefix === undefined ? name : exampleId(prefix);
}

function prefixOf(name: string, path: string): string | undefined {
  return PATH_IDS[path.slice(0, path.indexOf(`/:${name}`))];
}

function bodyExample({ examples, operationId }: Route, body: TSchema): unknown {
  return examples?.body ?? exampleOf(body, operationId);
}
