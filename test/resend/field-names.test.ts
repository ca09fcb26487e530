import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Kind, type TSchema } from "@sinclair/typebox";
import { BYTE_LIST } from "../../src/core/validation.ts";
import { inTheirWords } from "../../src/http/resend/form/field-names.ts";
import { NO_FIELDS } from "../../src/http/resend/form/given.ts";
import { resendRoutes } from "../../src/http/resend/routes.ts";
import type { Route } from "../../src/http/routing/route.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(120_000);

let service: TestService;
let ids: Record<string, string>;
beforeAll(async () => {
  service = await startService({ CAPTURE_STRICT: "1", RATE_LIMIT: "0" });
  const domain = await verifiedDomain(service, "shop.test");
  const post = async (path: string, body: unknown) => (await service.call("POST", path, body)).body.id;
  ids = {
    emails: await post("/resend/emails", { ...SEND, scheduled_at: "in 1 hour" }),
    templates: await post("/resend/templates", { name: "n", html: "x" }),
    contacts: await post("/resend/contacts", { email: "ana@x.test" }),
    webhooks: await post("/resend/webhooks", { endpoint: "https://x.test/h", events: ["email.sent"] }),
    "api-keys": await post("/resend/api-keys", { name: "k" }),
    domains: String(domain),
  };
});
afterAll(() => service.stop());

const SEND = { from: "a@shop.test", to: "delivered@simulator.mail.test", subject: "x", text: "x" };
/** Bodies that are accepted, of which one field at a time is spoilt. */
const GOOD: Readonly<Record<string, unknown>> = {
  "POST /emails": SEND,
  "POST /emails/batch": [SEND],
  "POST /templates": { name: "n", html: "x" },
  "POST /contacts": { email: "ben@x.test" },
  "POST /webhooks": { endpoint: "https://x.test/h", events: ["email.sent"] },
  "POST /api-keys": { name: "k" },
  "POST /domains": { name: "b.test" },
};

/** Values of which the rules of each field refuse some. */
const BAD = ["", " ", "a b", "a\u0000b", "\u00fc\r\nX: y", "x".repeat(70_000), 7, -1, true, [], {}, ["a b"]];

/** Returns the body with a value at a path of names and places. */
function withValue(body: unknown, [step, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (step === undefined) return value;
  const inner = typeof body === "object" && body !== null ? body : typeof step === "number" ? [] : {};
  const copy: unknown[] | Record<string, unknown> = Array.isArray(inner) ? [...inner] : { ...inner };
  const at = copy as Record<string | number, unknown>;
  at[step] = withValue(at[step], rest, value);
  return copy;
}

/** Returns the path of each value that a schema names, also within lists and maps. */
function pathsOf(schema: TSchema): (string | number)[][] {
  if (schema[Kind] === BYTE_LIST) return [];
  const variants: TSchema[] = schema.anyOf ?? [];
  const named = Object.entries<TSchema>(schema.properties ?? {});
  const others = Object.values<TSchema>(schema.patternProperties ?? {});
  return [
    [],
    ...variants.flatMap(pathsOf).filter((path) => path.length > 0),
    ...named.flatMap(([name, field]) => pathsOf(field).map((path) => [name, ...path])),
    ...others.flatMap((field) => pathsOf(field).map((path) => ["aB", ...path])),
    ...(schema.type === "array" ? pathsOf(schema.items).map((path) => [0, ...path]) : []),
  ];
}

async function routes(): Promise<Route[]> {
  const { body } = await service.call("GET", "/docs/json");
  const operations = Object.values<Record<string, { operationId: string }>>(body.paths);
  const named = operations.flatMap((methods) => Object.values(methods));
  const empty = { level: "project", scope: null } as const;
  return resendRoutes(named.map(({ operationId }) => ({ ...empty, operationId })) as Route[], {} as never);
}

/** Names of several words that are the client's own, or advice about a call of `/v1`. */
const ELSEWHERE =
  /"[^"]*\baB\b[^"]*"|`[^`]*`|\b\w+(?: for each send)? of (?:POST|PATCH) \S+|\/v1\/\S+|[a-z]+:\/\/\S+/g;
const CAMEL = /\b[a-z]+[A-Z]\w*/;

test("no error of /resend names a field by a name that only /v1 has", async () => {
  const withBody = (await routes()).filter(({ method }) => method === "POST" || method === "PATCH");
  const wrong = new Set<string>();
  let refused = 0;
  for (const { method, path, body } of withBody) {
    if (body === undefined || body === NO_FIELDS || path.includes(":segment")) continue;
    const short = path.replace("/resend", "");
    const target = path.replace(/\/(\w[\w-]*)\/:\w+/, (_, name: string) => `/${name}/${ids[name]}`);
    for (const place of pathsOf(body))
      for (const value of BAD) {
        const spoilt = withValue(GOOD[`${method} ${short}`] ?? {}, place, value);
        const { status, body: said } = await service.call(method, target, spoilt);
        if (status < 400) continue;
        refused++;
        expect([status, place, typeof said.message]).toEqual([status, place, "string"]);
        if (CAMEL.test(said.message.replace(ELSEWHERE, ""))) wrong.add(`${method} ${short}: ${said.message}`);
      }
  }
  expect(refused).toBeGreaterThan(300);
  expect([...wrong]).toEqual([]);
});

describe("an error's message names each field as Resend does", () => {
  test.each([
    ["replyTo[0]", '"replyTo[0]" must be an address.', '"reply_to[0]" must be an address.'],
    ["attachments[0].contentId", '"attachments[0].contentId" is x.', '"attachments[0].content_id" is x.'],
    [
      "subject",
      '"subject" is required, unless templateId is given.',
      '"subject" is required, unless template.id is given.',
    ],
    ["domain", '"domain" must be a domain name.', '"name" must be a domain name.'],
    ["data.firstName", '"data.firstName" is x.', '"template.variables.firstName" is x.'],
    ["headers.xY", '"headers.xY" is x.', '"headers.xY" is x.'],
    ["emails[3].replyTo", '"emails[3].replyTo" is x.', '"[3].reply_to" is x.'],
    [
      "emails[1].data.a",
      'Item 1 is refused: "data.a" is x.',
      'Item 1 is refused: "template.variables.a" is x.',
    ],
    [
      "topic_id",
      '"topic_id" is x. Use unsubscribeLink of POST /v1/emails.',
      '"topic_id" is x. Use unsubscribeLink of POST /v1/emails.',
    ],
  ])("%s", (param, ours, theirs) => {
    expect(inTheirWords(ours, param)).toBe(theirs);
  });
});

test("the errors of a permissive batch name fields as Resend does", async () => {
  const bad = { ...SEND, reply_to: "no address" };
  const headers = { "x-batch-validation": "permissive" };
  const { body } = await service.call("POST", "/resend/emails/batch", [SEND, bad], { headers });
  expect(body.errors).toEqual([{ index: 1, message: expect.stringContaining("reply_to") }]);
});
