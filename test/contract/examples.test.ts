import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { bodyFor, makePath, domainNames, MAKERS, queryFor } from "../support/estate.ts";
import { faultsOf, undocumentedIn } from "../support/json-schema.ts";
import {
  fill,
  type Operation,
  type RawOperation,
  resolve,
  type Schema,
} from "../support/openapi-document.ts";
import { startWorld, type World } from "../support/tenants.ts";

const START_MS = 180_000;
const RUN_MS = 60_000;
setDefaultTimeout(RUN_MS);
/** Answers without a body, or with a body that is no text. */
const WITHOUT_EXAMPLE: ReadonlySet<string> = new Set(["204", "302"]);

let world: World;
beforeAll(async () => {
  world = await startWorld();
}, START_MS);
afterAll(() => world.stop());

function raw({ path, method }: Operation): RawOperation {
  const operation = world.document.paths[path]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`${method} ${path} is not in the document`);
  return operation;
}

/** Collections whose resources examples name in bodies, by the prefix of their ids. */
const COLLECTIONS: Readonly<Record<string, string>> = { inb: "/v1/inboxes", dom: "/v1/domains" };

/** Returns the text with its ids replaced by those of resources that exist. */
async function withRealIds(text: string): Promise<string> {
  const prefixes = new Set([...text.matchAll(/"([a-z]{3})_[0-9a-z]{26}"/g)].map(([, prefix = ""]) => prefix));
  let filled = text;
  for (const prefix of prefixes) {
    const make = MAKERS[COLLECTIONS[prefix] ?? ""];
    const making = { world, tenant: world.home, above: [] };
    const own: Readonly<Record<string, string>> = {
      snd: world.home.senderId,
      msg: world.home.receivedId,
      top: world.home.topicId,
    };
    const id = own[prefix] ?? (await make?.(making))?.id;
    if (id === undefined) throw new Error(`COLLECTIONS has no "${prefix}"`);
    filled = filled.replace(new RegExp(`${prefix}_[0-9a-z]{26}`, "g"), id);
  }
  return filled;
}

/** Returns the example of a body, without a message, because none is to the contact in the path. In the path of a domain, names below the example's domain become names below that one. */
function exampleFor({ bodyExample }: Operation, id: string): string {
  const withoutMessage = (name: string, value: unknown) => (name === "messageId" ? undefined : value);
  return JSON.stringify(bodyExample, withoutMessage).replaceAll(
    ".mail.example.com",
    `.${domainNames.get(id) ?? "mail.example.com"}`,
  );
}

test("every operation has a summary, a description, and an example of its body and of each answer", () => {
  const lacking = world.operations.flatMap((operation) => {
    const { summary = "", description = "", requestBody, responses } = raw(operation);
    const told = Object.entries(responses).flatMap(([status, answer]) =>
      Object.values(resolve(world.document, answer).content ?? {}).map(({ example }) => ({
        status,
        example,
      })),
    );
    return [
      ...(summary.length > 0 ? [] : [`${operation.key}: no summary`]),
      ...(description.length > 20 ? [] : [`${operation.key}: no description`]),
      ...(requestBody === undefined || (operation.bodyExample ?? operation.file) != null
        ? []
        : [`${operation.key}: body`]),
      ...told
        .filter(({ example }) => example === undefined)
        .map(({ status }) => `${operation.key}: ${status}`),
      ...operation.successes
        .filter((status) => !WITHOUT_EXAMPLE.has(String(status)) && responses[status]?.content === undefined)
        .map((status) => `${operation.key}: ${status}`),
    ];
  });
  expect(lacking).toEqual([]);
});

test("every example fits its schema, and shows no field that the schema lacks", () => {
  const { document } = world;
  const faults = world.operations.flatMap((operation) => {
    const { requestBody, responses } = raw(operation);
    const contents = [requestBody, ...Object.values(responses).map((answer) => resolve(document, answer))];
    return contents.flatMap((part) =>
      Object.values(part?.content ?? {}).flatMap(({ schema, example }) =>
        [...faultsOf(document, schema, example), ...undocumentedIn(document, schema, example)].map(
          (fault) => `${operation.key}: ${fault} in ${JSON.stringify(example)}`,
        ),
      ),
    );
  });
  expect(faults).toEqual([]);
});

test("the example of a webhook request is an event", () => {
  const { document } = world;
  const content = document.webhooks.event?.post?.requestBody?.content["application/json"];
  if (content === undefined) throw new Error("no webhook");
  expect(faultsOf(document, content.schema, content.example)).toEqual([]);
});

test("every example of a request succeeds, and its answer has the fields of the example", async () => {
  const faults: string[] = [];
  for (const operation of world.operations) {
    const made = await makePath(operation, world, world.home);
    const ids = made.map(({ id }) => encodeURIComponent(id));
    const body =
      operation.body === null
        ? bodyFor(operation, world, world.home)
        : await withRealIds(exampleFor(operation, made[0]?.id ?? ""));
    const key = operation.level === "account" ? world.home.wide : world.home.key;
    const filled = fill(operation, ids);
    const path = `${filled}${queryFor(operation, filled)}`;
    const answer = await world.call(operation.method, path, { key }, body);
    const told = raw(operation).responses[answer.status]?.content?.["application/json"]?.example;
    const label = `${operation.key} ${body ?? ""}: ${answer.status} ${answer.text}`;
    if (!operation.successes.includes(answer.status)) faults.push(label);
    else if (told !== undefined) faults.push(...lackingOf(told, answer.json).map((at) => `${label}: ${at}`));
  }
  expect(faults).toEqual([]);
});

/** Fields whose example must name something that exists, and does not here, or a time that is near. */
const NAMING: ReadonlySet<string> = new Set([
  "templateId",
  "messageId",
  "address",
  "name",
  "pool",
  "confirm",
  "assigneeId",
  "snoozedUntil",
]);

/** Returns the examples of a schema and of its variants. */
function examplesIn(schema: Schema): unknown[] {
  const { examples = [], anyOf = [] } = resolve(world.document, schema) as Schema & { examples?: unknown[] };
  return [...examples, ...anyOf.flatMap(examplesIn)];
}

/** Returns the requests with the example of one parameter or field each. */
function requestsWithExamples(operation: Operation): { name: string; query: string; body?: string }[] {
  const own = queryFor(operation);
  const queries = operation.query.flatMap(({ name, schema }) =>
    examplesIn(schema).map((example) => ({
      name,
      query: `${own === "" ? "?" : `${own}&`}${name}=${encodeURIComponent(String(example))}`,
    })),
  );
  const fields = Object.entries(operation.body === null ? {} : (operation.body.properties ?? {}));
  const bodies = fields.flatMap(([name, schema]) =>
    examplesIn(schema).map((example) => ({
      name,
      query: own,
      body: JSON.stringify({ ...(operation.bodyExample as object), [name]: example }),
    })),
  );
  return [...queries, ...bodies].filter(({ name }) => !NAMING.has(name));
}

test("the example of every parameter and field has a value that the operation takes", async () => {
  const faults: string[] = [];
  for (const operation of world.operations) {
    for (const { name, query, body } of requestsWithExamples(operation)) {
      const ids = (await makePath(operation, world, world.home)).map(({ id }) => encodeURIComponent(id));
      const key = operation.level === "account" ? world.home.wide : world.home.key;
      const path = `${fill(operation, ids)}${query}`;
      const { status, text, json } = await world.call(operation.method, path, { key }, body);
      if ((status === 400 || status === 422) && json.error.param === name)
        faults.push(`${operation.key} ${name}: ${text}`);
    }
  }
  expect(faults).toEqual([]);
});

/** Returns the places of the example that the answer lacks. A list may be empty, and a value null, in one of them alone. */
function lackingOf(example: unknown, answer: unknown, at = "$"): string[] {
  // The details of an event depend on its type.
  if (example === null || answer === null || at.endsWith("events[0].data")) return [];
  if (Array.isArray(example)) {
    if (!Array.isArray(answer)) return [`${at} is a list in the example alone`];
    return example.length === 0 || answer.length === 0 ? [] : lackingOf(example[0], answer[0], `${at}[0]`);
  }
  if (typeof example !== "object") return typeof answer === typeof example ? [] : [`${at} is another type`];
  const shown = answer as Record<string, unknown>;
  return Object.entries(example).flatMap(([name, inner]) =>
    name in shown
      ? lackingOf(inner, shown[name], `${at}.${name}`)
      : [`${at}.${name} is in the example alone`],
  );
}
