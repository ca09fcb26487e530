import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Kind, type TSchema, Type } from "@sinclair/typebox";
import { BYTE_LIST } from "../../src/core/validation.ts";
import { NO_FIELDS } from "../../src/http/resend/form/given.ts";
import { resendRoutes } from "../../src/http/resend/routes.ts";
import { MAX_WORDS_CHARS } from "../../src/http/resend/scheduled-words.ts";
import { MAX_JSON_VALUES, MAX_LIST_NUMBERS } from "../../src/http/json/scanner.ts";
import type { Route } from "../../src/http/routing/route.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await verifiedDomain(service, "shop.test");
});
afterAll(() => service.stop());

/** Returns the parts of a body that have no limit. */
function unbounded(schema: TSchema, path = ""): string[] {
  const variants: TSchema[] | undefined = schema.anyOf;
  if (variants !== undefined) return variants.flatMap((variant) => unbounded(variant, path));
  if (schema.const !== undefined) return [];
  if (schema[Kind] === BYTE_LIST) return schema.maxItems === undefined ? [`${path}: bytes`] : [];
  switch (schema.type) {
    case "string":
      return schema.maxLength === undefined ? [`${path}: text`] : [];
    case "array":
      return [
        ...(schema.maxItems === undefined ? [`${path}: list`] : []),
        ...unbounded(schema.items, `${path}[]`),
      ];
    case "object": {
      const named = Object.entries<TSchema>(schema.properties ?? {});
      const others = Object.values<TSchema>(schema.patternProperties ?? {});
      return [
        ...(others.length > 0 && schema.maxProperties === undefined ? [`${path}: map`] : []),
        ...named.flatMap(([name, field]) => unbounded(field, `${path}.${name}`)),
        ...others.flatMap((field) => unbounded(field, `${path}.*`)),
      ];
    }
    case "boolean":
    case "integer":
    case "null":
    case "number":
      return [];
    default:
      return [`${path}: anything`];
  }
}

/** Returns the routes of `/resend`, on operations that do nothing. */
async function routes(): Promise<Route[]> {
  const { body } = await service.call("GET", "/docs/json");
  const operations = Object.values<Record<string, { operationId: string }>>(body.paths);
  const named = operations.flatMap((methods) => Object.values(methods));
  const empty = { level: "project", scope: null } as const;
  return resendRoutes(named.map(({ operationId }) => ({ ...empty, operationId })) as Route[], {} as never);
}

describe("a body of Resend's API", () => {
  test.each([
    [Type.String(), [": text"]],
    [Type.Object({ a: Type.Array(Type.String({ maxLength: 1 })) }), [".a: list"]],
    [Type.Record(Type.String(), Type.Null()), [": map"]],
    [Type.Union([Type.Null(), Type.Unknown()]), [": anything"]],
  ])("a body of Resend's API without a limit is found: %j", (schema, faults) => {
    expect(unbounded(schema)).toEqual(faults);
  });

  test("a body of Resend's API has a limit for every text, list and map that a route reads", async () => {
    // A file has the limit of its bytes.
    const withBody = (await routes()).filter(
      ({ method, uploads }) => uploads === undefined && (method === "POST" || method === "PATCH"),
    );
    expect(withBody.length).toBeGreaterThan(20);
    const faults = withBody.flatMap(({ operationId, body, bodyCheckedBy }) => {
      if (body === undefined || bodyCheckedBy === "handler") return [`${operationId}: not checked`];
      return body === NO_FIELDS ? [] : unbounded(body, operationId);
    });
    expect(faults).toEqual([]);
  });

  const send = { from: "a@shop.test", to: "delivered@simulator.mail.test", subject: "x", text: "x" };
  const template = { name: "n", subject: "x", html: "{{{A}}}".repeat(2000) };
  const variable = { key: "A", type: "string", fallback_value: "x".repeat(2000) };
  test.each<[string, string, unknown, string]>([
    [
      "a time that is one character too long",
      "/emails",
      { ...send, scheduled_at: "1/".repeat(MAX_WORDS_CHARS).slice(0, MAX_WORDS_CHARS + 1) },
      '"scheduled_at" must be',
    ],
    [
      "a time of 80 kB in a batch",
      "/emails/batch",
      [{ ...send, scheduled_at: "1/".repeat(40_000) }],
      '"[0].scheduled_at" must be',
    ],
    [
      "a fallback that is one character too long",
      "/templates",
      { ...template, variables: [{ ...variable, fallback_value: "x".repeat(2001) }] },
      '"variables[0].fallback_value" must be a string of at most 2000 characters',
    ],
    [
      "a fallback that makes a template too long where it is repeated",
      "/templates",
      { ...template, variables: [variable] },
      '"html" must have at most 2097152 bytes with a fallback at each placeholder.',
    ],
  ])("a body of Resend's API is refused for %s", async (_name, path, body, message) => {
    const refused = await service.call("POST", `/resend${path}`, body);
    expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining(message)]);
  });
});

describe("a file as byte numbers", () => {
  const send = (content: unknown) =>
    service.call("POST", "/resend/emails", {
      from: "a@shop.test",
      to: "delivered@simulator.mail.test",
      subject: "x",
      text: "x",
      attachments: [{ filename: "a.bin", content }],
    });

  test("a file as byte numbers may have more bytes than a body has other values, and arrives as it is", async () => {
    const bytes = Array.from({ length: MAX_JSON_VALUES + 1 }, (_, at) => at % 256);
    const { status, body } = await send(bytes);
    expect(status).toBe(200);
    const files = await service.call("GET", `/resend/emails/${body.id}/attachments`);
    const url = files.body.data[0].download_url.replace(/^https?:\/\/[^/]+/, service.url);
    expect(Buffer.from(await (await fetch(url)).arrayBuffer()).equals(Buffer.from(bytes))).toBe(true);
  });

  test("a file as byte numbers may be a Buffer as Node writes it", async () => {
    const { status, body } = await send({ type: "Buffer", data: [104, 105] });
    const files = await service.call("GET", `/resend/emails/${body.id}/attachments`);
    expect([status, files.body.data[0].size]).toEqual([200, 2]);
    expect((await send({ type: "Buffer", data: [256] })).status).toBe(422);
    expect((await send({ type: "Blob", data: [1] })).status).toBe(422);
  });

  test("a file as byte numbers is refused with one byte too many", async () => {
    const { status, body } = await send(new Array(MAX_LIST_NUMBERS + 1).fill(1));
    expect([status, body.message]).toEqual([422, expect.stringContaining("Send larger files as base64.")]);
  });

  test.each([[[256]], [[-1]], [[1.5]]])("a file as byte numbers is refused with %j", async (bytes) => {
    const { status, body } = await send(bytes);
    expect([status, body.message]).toEqual([
      422,
      '"attachments[0].content" must be base64 or a list of bytes as numbers from 0 to 255.',
    ]);
  });
});

describe("a time in words", () => {
  const at = "2027-01-04T12:00:00Z";
  test.each([
    ["tomorrow at 9am", "2027-01-05T09:00:00.000Z"],
    ["in 1 hour and 30 minutes", "2027-01-04T13:30:00.000Z"],
    ["In 2 hours from now", "2027-01-04T14:00:00.000Z"],
    ["on friday at noon", "2027-01-08T12:00:00.000Z"],
    ["the day after tomorrow", "2027-01-06T12:00:00.000Z"],
    ["2027-01-05 09:00 CET", "2027-01-05T08:00:00.000Z"],
    ["2027-01-05T09:00:00", "2027-01-05T09:00:00.000Z"],
    ["2027-01-05T09:00:00+01:00", "2027-01-05T09:00:00+01:00"],
  ])("%p is taken", async (words, time) => {
    const { timeOf } = await import("../../src/http/resend/scheduled-words.ts");
    expect(await timeOf(words, Date.parse(at))).toBe(time);
  });

  test.each([
    "tomorrow at 9am Europe/Berlin",
    "2026-11-29T09:00:00 America/New_York",
    "2026-11-29T09:00:00[Europe/Berlin]",
    "not tomorrow",
    "every day at 9am",
    "in an hour and a half",
    "in one and a half hours",
    "a week from friday",
    "monday and tuesday",
    "tomorrow 9am - 10am",
    "tomorrow before 9am",
    "last friday at 9",
    "later today",
    "tomorrow at 25:00",
    "tomorrow or so",
    "this hour",
    "this week",
    "2027-01-05T09:00:00+24:00",
    "",
  ])("%p is refused, because a word is not part of one time", async (words) => {
    const { timeOf } = await import("../../src/http/resend/scheduled-words.ts");
    expect(timeOf(words, Date.parse(at))).rejects.toThrow("Each word must belong to the time.");
  });

  test.each([
    "yesterday",
    "5 minutes ago",
    "2027-13-01",
    "two days before tuesday",
    "today at 8am",
    "Jan 5 25",
    "2027-01-04T11:58:00",
  ])("%p is refused as past, because it would send at once", async (words) => {
    const { timeOf } = await import("../../src/http/resend/scheduled-words.ts");
    expect(timeOf(words, Date.parse("2027-01-14T12:00:00Z"))).rejects.toThrow("in the past");
  });

  test("words for this moment are accepted and mean now", async () => {
    const { timeOf } = await import("../../src/http/resend/scheduled-words.ts");
    expect(await timeOf("now", Date.parse(at))).toBe("2027-01-04T12:00:00.000Z");
    expect(await timeOf("2027-01-04T11:59:00", Date.parse(at))).toBe("2027-01-04T11:59:00.000Z");
  });
});
