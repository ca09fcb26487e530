import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { withNamedSchemas } from "../../src/http/routing/named-schemas.ts";
import { bodyFor, makePath, missingFor, queryFor } from "../support/estate.ts";
import { spawnTool, toolPath, type Tool } from "../support/npm-tool.ts";
import { freePort } from "../support/redis.ts";
import {
  ANY_JSON,
  fill,
  headerFaults,
  type Operation,
  resolve,
  type Schema,
} from "../support/openapi-document.ts";
import { generate, generateQuery, type Random, seeded } from "../support/openapi-values.ts";
import { PROJECT_HEADER } from "../support/tenancy.ts";
import { type RawAnswer, send, startWorld, type World } from "../support/tenants.ts";

const PRISM: Tool = { name: "@stoplight/prism-cli", version: "5.16.0", bin: "dist/index.js" };
const REDOCLY: Tool = { name: "@redocly/cli", version: "2.77.0", bin: "bin/cli.js" };

const START_MS = 180_000;
setDefaultTimeout(START_MS);
const LINT_MS = 30_000;
const RUN_MS = 360_000;

/** Requests an operation: the first with a valid body, of the others half with anything that the schema allows. */
const ROUNDS = 3;
/** The part of a tool's output that is kept. */
const KEPT_CHARS = 2000;
/** Another seed makes other requests: `POSTRIDER_SEED=7 bun test test/contract/openapi.slow.test.ts`. */
const SEED = Number(process.env.POSTRIDER_SEED ?? "20260131");

let world: World;
beforeAll(async () => {
  world = await startWorld();
}, START_MS);
afterAll(() => world.stop());

/** Writes the document with the address of the test's server. */
async function writeDocument(
  name: string,
  change: (text: string) => string = (text) => text,
): Promise<string> {
  const path = join(world.service.folder, name);
  const text = JSON.stringify({ ...world.document, servers: [{ url: world.service.url }] });
  await Bun.write(path, change(text));
  return path;
}

/** A part of the document with its references resolved. */
function whole<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(whole) as Part;
  if ("$ref" in part && part.$ref === ANY_JSON) return part;
  if ("$ref" in part) return whole(resolve(world.document, part as Schema)) as Part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, whole(value)])) as Part;
}

function absent(tool: Tool): string {
  return existsSync(toolPath(tool)) ? "" : ` (skipped: ${tool.name} ${tool.version} is not installed)`;
}

describe("the OpenAPI document", () => {
  test("the OpenAPI document gives the format of times, addresses and webhook URLs in requests and answers", () => {
    const formatsIn = (part: unknown): string[] =>
      [...JSON.stringify(part).matchAll(/"format":"([^"]*)"/g)].map(([, format = ""]) => format);
    const paths: object[] = Object.values(whole(world.document.paths));
    const operations: Record<string, unknown>[] = paths.flatMap((path) => Object.values(path));
    const asked = (id: string) => {
      const { parameters, requestBody } = operations.find(({ operationId }) => operationId === id) ?? {};
      return formatsIn([parameters, requestBody]);
    };
    expect([asked("addSuppression"), asked("removeSuppression"), asked("createWebhook")]).toEqual([
      ["idn-email", "date-time"],
      ["idn-email"],
      ["uri"],
    ]);
    expect(new Set(asked("sendEmail"))).toEqual(new Set(["idn-email", "date-time"]));
    const of = (id: string) =>
      new Set(formatsIn(operations.find(({ operationId }) => operationId === id)?.responses));
    expect([of("getContact"), of("getWebhook")]).toEqual([
      new Set(["date-time"]),
      new Set(["uri", "date-time"]),
    ]);
    const times = JSON.stringify(whole(world.document)).match(/\{[^{}]*ISO 8601 time, UTC\.[^{}]*\}/g) ?? [];
    expect(times.length).toBeGreaterThan(50);
    expect(times.filter((time) => !time.includes('"format":"date-time"'))).toEqual([]);
  });

  test("the OpenAPI document writes a choice between texts as one enum, so that client generators make one type", () => {
    const text = JSON.stringify(world.document);
    expect(text).not.toMatch(/"anyOf":\[\{"const":/);
    expect(text).toContain(
      '"name":"direction","in":"query","required":false,"schema":{"type":"string","enum":["inbound","outbound"]}',
    );
    expect(text).toContain('"anyOf":[{"type":"string","enum":["hard","soft"]},{"type":"null"}]');
  });

  test("the OpenAPI document names what it shows in several places, so that client generators make one type each", () => {
    const { schemas = {} } = world.document.components;
    const names = Object.keys(schemas);
    for (const name of ["Message", "Contact", "Domain", "Webhook", "Thread", "SendItem", "Template", "Error"])
      expect(names).toContain(name);
    const { paths, webhooks, components } = world.document;
    const referred = JSON.stringify([paths, webhooks, schemas, components.responses]);
    for (const name of names) expect(referred).toContain(`{"$ref":"#/components/schemas/${name}"}`);
    // All other schemas are answers of one operation alone, and small parts.
    const inline = (JSON.stringify(world.document.paths).match(/"type":"object"/g) ?? []).length;
    expect(inline).toBeLessThan(145);
  });

  test("the OpenAPI document names exactly the statuses that can occur", () => {
    const statuses = (key: string) => world.operations.find((one) => one.key === key)?.answers.keys() ?? [];
    // Its only value is any text.
    expect([...statuses("GET /v1/inboxes")]).not.toContain(422);
    for (const key of ["GET /v1/stats", "GET /v1/domains", "DELETE /v1/suppressions"])
      expect([...statuses(key)]).toContain(422);
    // They read the database. A pixel and a link of a message are answered without it.
    for (const method of ["GET", "POST"]) expect([...statuses(`${method} /u/{}`)]).toContain(503);
    for (const path of ["o", "c"]) expect([...statuses(`GET /${path}/{}`)]).not.toContain(503);
  });

  test("the OpenAPI document gives no name to two schemas", () => {
    const of = (name: string) => ({
      type: "object",
      title: "Thing",
      properties: { [name]: { type: "string" } },
    });
    expect(withNamedSchemas<unknown>([of("title"), of("title")])).toEqual({
      part: [{ $ref: "#/components/schemas/Thing" }, { $ref: "#/components/schemas/Thing" }],
      schemas: { Thing: of("title") },
    });
    expect(() => withNamedSchemas([of("a"), of("b")])).toThrow("two schemas are called Thing");
  });

  const run = test.skipIf(absent(REDOCLY) !== "");

  async function lint(path: string) {
    const tool = spawnTool(REDOCLY, ["lint", "--extends=spec", "--format=json", path], {
      REDOCLY_TELEMETRY: "off",
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
    });
    const output = await new Response(tool.stdout).text();
    return { code: await tool.exited, problems: JSON.parse(output).problems };
  }

  run(
    `is valid by the specification${absent(REDOCLY)}`,
    async () => {
      const { code, problems } = await lint(await writeDocument("valid.json"));
      expect(problems).toEqual([]);
      expect(code).toBe(0);
    },
    LINT_MS,
  );

  run(
    `that breaks the specification is seen to${absent(REDOCLY)}`,
    async () => {
      const broken = await writeDocument("broken.json", (text) =>
        text.replace('"in":"path"', '"in":"nowhere"'),
      );
      expect((await lint(broken)).code).not.toBe(0);
    },
    LINT_MS,
  );
});

test("the OpenAPI document lists the header fields of every answer", async () => {
  const limited = await startWorld({ PLAN_PRO: "1/3" });
  try {
    const { wide, key } = limited.home;
    const make = (name: string, presented = wide, headers = {}) =>
      limited.call("POST", "/v1/senders", { key: presented, headers }, { name });
    const once = { "Idempotency-Key": "a" };
    const answers = [
      await make("one", "pr_nobody"),
      await make("one", wide, once),
      await make("one", wide, once),
      await make("two", wide, once),
      await make("one"),
      await make("two", key),
    ];
    const operation = limited.operations.find((one) => one.key === "POST /v1/senders");
    if (operation === undefined) throw new Error("no such operation");
    expect(answers.map(({ status }) => status)).toEqual([401, 201, 201, 409, 429, 403]);
    const faults = answers.map(({ status, headers }) => headerFaults(operation, status, headers));
    expect(faults.flat()).toEqual([]);
    const shown = (name: string) => answers.map(({ headers }) => headers.get(name));
    expect(shown("Idempotent-Replayed")).toEqual([null, null, "true", null, null, null]);
    expect(shown("RateLimit-Limit")).toEqual([null, "3", "3", "3", "3", "3"]);
    expect(shown("WWW-Authenticate")).toEqual(["Bearer", null, null, null, null, null]);
    expect(Number(shown("Retry-After")[4])).toBeGreaterThan(0);
  } finally {
    await limited.stop();
  }
});

/** A proxy that checks every request and answer against the document, and reports violations in a header. */
interface Proxy {
  url: string;
  stop(): Promise<void>;
}

async function startProxy(document: string): Promise<Proxy> {
  const port = await freePort();
  const args = ["proxy", document, world.service.url, "-p", String(port), "--cors=false", "-v", "info"];
  const tool = spawnTool(PRISM, args, {});
  const url = `http://127.0.0.1:${port}`;
  const listening = said(tool.stdout, /listening on/i);
  await Promise.race([
    listening,
    tool.exited.then((code) => Promise.reject(new Error(`prism ended: ${code}`))),
  ]);
  return {
    url,
    async stop() {
      tool.kill();
      await tool.exited;
    },
  };
}

/** Resolves once the text has come. The stream is read to its end, so that its writer never blocks. */
function said(stream: ReadableStream<Uint8Array>, wanted: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = "";
    const decoder = new TextDecoder();
    const read = async () => {
      for await (const chunk of stream) {
        seen += decoder.decode(chunk, { stream: true });
        if (wanted.test(seen)) resolve();
        seen = seen.slice(-KEPT_CHARS);
      }
    };
    read().then(() => reject(new Error(`ended without ${wanted}: ${seen}`)), reject);
  });
}

interface Violation {
  location: string[];
  severity: string;
  message: string;
}

function violationsOf({ headers }: RawAnswer): Violation[] {
  return JSON.parse(headers.get("sl-violations") ?? "[]");
}

interface Generated {
  operation: Operation;
  path: string;
  body: unknown;
}

async function generateRequest(operation: Operation, random: Random, valid: boolean): Promise<Generated> {
  const made = await makePath(operation, world, world.home);
  const path = fill(
    operation,
    made.map(({ id }) => encodeURIComponent(id)),
  );
  const query = queryFor(operation, path) || (valid ? "" : generateQuery(world.document, operation, random));
  const good = bodyFor(operation, world, world.home, path);
  const any = operation.body === null ? good : generate(world.document, operation.body, random);
  const body =
    valid || operation.file !== null || random() < 0.5
      ? good
      : random() < 0.5 || !isObject(good) || !isObject(any)
        ? any
        : { ...any, ...good };
  return { operation, path: `${path}${query}`, body };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

describe("the service", () => {
  const run = test.skipIf(absent(PRISM) !== "");

  run(
    `keeps to its document on generated requests over all operations${absent(PRISM)}`,
    async () => {
      const random = seeded(SEED);
      // The proxy would follow a redirect to any target, and wait for the end of a stream.
      const asked = world.operations.filter(
        ({ path, successes }) => successes.some((status) => status < 300) && path !== "/v1/events/stream",
      );
      const proxy = await startProxy(await writeDocument("proxied.json"));
      const faults: string[] = [];
      const statuses = new Map<number, number>();
      const succeeded = new Set<string>();
      let requests = 0;
      try {
        for (const operation of asked) {
          if (missingFor(operation).length > 0) continue;
          for (let round = 0; round < ROUNDS; round++) {
            const { path, body } = await generateRequest(operation, random, round === 0);
            const key = operation.level === "account" ? world.home.wide : world.home.key;
            const headers: Record<string, string> =
              round % 3 === 0 && operation.level === "project"
                ? { [PROJECT_HEADER]: world.home.externalId }
                : {};
            const answer = await send(proxy.url, operation.method, path, { key, headers }, body);
            requests++;
            statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
            if (answer.status < 300) succeeded.add(operation.key);
            const label = `${operation.key} ${answer.status}: ${path} ${JSON.stringify(body)}`;
            for (const violation of violationsOf(answer))
              faults.push(`${label}: ${violation.location.join(".")}: ${violation.message}`);
            if (answer.status >= 500) faults.push(`${label}: ${answer.text}`);
          }
        }
      } finally {
        await proxy.stop();
      }
      const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
      process.stdout.write(`openapi: ${requests} generated requests (seed ${SEED}): ${counts.join(", ")}\n`);
      expect(faults).toEqual([]);
      // If every request were refused, the run would prove little.
      const never = asked.filter(({ key }) => !succeeded.has(key)).map(({ key }) => key);
      expect(never).toEqual([]);
    },
    RUN_MS,
  );

  run(
    `that answers otherwise than documented is seen to${absent(PRISM)}`,
    async () => {
      const other = await writeDocument("other.json", (text) =>
        text.replaceAll('"nextCursor":{', '"nextCursor":{"not":{},'),
      );
      const proxy = await startProxy(other);
      try {
        const answer = await send(proxy.url, "GET", "/v1/webhooks", { key: world.home.key });
        expect(answer.status).toBe(200);
        expect(violationsOf(answer).map(({ location }) => location[0])).toContain("response");
      } finally {
        await proxy.stop();
      }
    },
    RUN_MS,
  );
});
