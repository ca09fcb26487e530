/** Bodies of Resend's API that are bad for their translation. */
import type { TSchema } from "@sinclair/typebox";
import { check } from "../../../../src/core/validation.ts";
import { MAX_LIST_NUMBERS } from "../../../../src/http/json/scanner.ts";
import { SendBody, sendItemOf } from "../../../../src/http/resend/send-body.ts";
import { showTemplate, TemplateFields, templateFields } from "../../../../src/http/resend/templates.ts";
import { casesOf, repeated, type WorstCase } from "./worst-case.ts";

const MEBIBYTE = 1024 * 1024;
/** Bytes of a part of a template. */
const MOST_PART = 2 * MEBIBYTE;
/** Bytes of a list with as many byte numbers as a body may have. */
const MOST_NUMBERS = 4 * MAX_LIST_NUMBERS;

/** Translates a body as its route does: only if it fits the schema. */
async function translated<Body>(
  schema: TSchema,
  body: Body,
  translate: (body: Body) => unknown,
): Promise<unknown> {
  try {
    return check(schema, body).length > 0 ? null : await translate(body);
  } catch {
    return null;
  }
}

const send = (fields: Partial<SendBody>) =>
  translated(SendBody, { from: "a@b.test", to: "a@b.test", ...fields }, (body) => sendItemOf(body, 0));

const VARIABLES = [{ key: "A", type: "string" as const, fallback_value: "x".repeat(2000) }];
const saved = (html: string) =>
  translated(TemplateFields, { name: "a", html, variables: VARIABLES }, templateFields);

const STORED = { id: "t", slug: "t", name: "t", subject: "", text: null, createdAt: "", updatedAt: "" };
const shown = (html: string) => showTemplate({ ...STORED, html, variables: ["A"] });

/** All of them. */
export const RESEND_CASES: readonly WorstCase[] = [
  ...casesOf(
    "/resend time",
    MEBIBYTE,
    (text: string) => send({ scheduled_at: text }),
    repeated(["1/", "1/1/", "1 ", "in 1 ", "monday ", "9:", "1-", "a ", " "]),
  ),
  ...casesOf("/resend file", MOST_NUMBERS, (content: number[]) => send({ attachments: [{ content }] }), {
    bytes: (octets) => Array.from({ length: octets / 4 }, (_, at) => at % 256),
    "one too large": (octets) => Array.from({ length: octets / 4 }, (_, at) => (at === 0 ? 256 : 1)),
    "all too large": (octets) => Array.from({ length: octets / 4 }, () => 256),
  }),
  ...casesOf(
    "/resend base64",
    4 * MEBIBYTE,
    (content: string) => send({ attachments: [{ content }] }),
    repeated(["a", "aaaa\r\n", "\r\n"]),
  ),
  ...casesOf(
    "/resend template saved",
    MOST_PART,
    saved,
    repeated(["{{{A}}}", "{{{B}}}", "{{{ A", "{{{", "{{{ ", "a", " "], "", "}}}"),
  ),
  ...casesOf(
    "/resend template shown",
    MOST_PART,
    shown,
    repeated(
      [
        "{{ A | raw }}",
        '{{ A | default: "x" | raw }}',
        '{{ A | default: "',
        '{{ A | default: "\\',
        "{{ A | default: 1",
        "{{ ",
        "a",
        '"',
        "\\",
      ],
      '{{ A | default: "',
    ),
  ),
];
