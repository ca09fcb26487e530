import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Attack, attack, attackAll, freshPath, newTally, type Tally } from "../support/attack.ts";
import { bodyFor, missingFor, queryFor } from "../support/estate.ts";
import {
  BODIES,
  bodyWith,
  bodyWithKey,
  HEADER_NAMES,
  HEADER_VALUES,
  jsonOf,
  percentOf,
  TEXTS,
  VALUES,
  withDoubles,
} from "../support/hostile.ts";
import { wireFaults } from "../support/mime-headers.ts";
import { fill, type Operation, type Place, placesOf } from "../support/openapi-document.ts";
import { BAD_HEADS, BAD_HOSTS, exchangeBytes, GOOD_HOSTS, LARGE_HEADS } from "../support/raw-http.ts";
import { shareOf } from "../support/share.ts";
import { startWorld, type World } from "../support/tenants.ts";

const START_MS = 180_000;
const RUN_MS = 600_000;
setDefaultTimeout(RUN_MS);
const NO_UTF8: readonly [kind: string, text: string] = ["no UTF-8", "\udc80"];
/** Longest text put into a URL: percent-encoded it must fit into a request head that the server reads. */
const URL_CHARS = 2000;
/**
 * Shares of the hostile values that are tried: for a body's text field, for each of its fields, and for an
 * operation's header. The next one gets others.
 */
const TEXT_SHARE = 9;
const VALUE_SHARE = 8;
const HEADER_SHARE = 32;
/** And for a parameter of a query, and a segment of a path. */
const QUERY_SHARE = 4;

let world: World;
beforeAll(async () => {
  world = await startWorld();
}, START_MS);
afterAll(() => world.stop());

function report(name: string, { requests, accepted, composed, faults }: Tally): void {
  const sent = composed === 0 ? "" : `, ${composed} messages composed`;
  process.stdout.write(`hostile: ${name}: ${requests} requests, ${accepted} accepted${sent}\n`);
  expect(faults).toEqual([]);
  // An answer cannot show it, but the tests share the service's process.
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
}

const known = () => world.operations.filter((operation) => missingFor(operation).length === 0);

function* bodyAttacks(operation: Operation): Generator<(path: string) => Omit<Attack, "operation">> {
  const { body } = operation;
  if (body === null) return;
  const query = queryFor(operation);
  const good = () => bodyFor(operation, world, world.home);
  const at = (label: string, make: () => string) => (path: string) => ({
    label,
    path: `${path}${query}`,
    body: make(),
  });
  for (const [name, text] of BODIES) yield at(`the whole body: ${name}`, () => text);
  for (const index of withDoubles(good()).keys())
    yield at(`a field given twice, ${index}`, () => withDoubles(good())[index] ?? "");
  for (const [index, place] of placesOf(world.document, body).entries()) {
    const where = place.at.join(".");
    const texts = isText(place) ? shareOf(TEXTS, TEXT_SHARE, index) : [];
    for (const [name, text] of texts)
      yield at(`${where}: ${name}`, () => bodyWith(good(), place, jsonOf(text)));
    for (const [name, json] of shareOf(VALUES, VALUE_SHARE, index))
      yield at(`${where}: ${name}`, () => bodyWith(good(), place, json));
    if (place.schema.additionalProperties !== undefined)
      for (const [name, text] of shareOf(TEXTS, TEXT_SHARE, index))
        yield at(`a key in ${where}: ${name}`, () => bodyWithKey(good(), place.at, text));
  }
}

/** Returns whether a string is valid in this place, including a place that accepts any string. */
function isText({ schema }: Place): boolean {
  const { type, anyOf } = schema;
  if (anyOf !== undefined) return anyOf.some((part) => isText({ at: [], schema: part }));
  return type === "string" || type === undefined;
}

describe("hostile input", () => {
  // Before the bodies, because some of them make resources with these very names.
  test("hostile input is harmless in every segment of every path", async () => {
    const tally = newTally(world);
    for (const [index, operation] of known().entries()) {
      if (operation.pathParams.length === 0) continue;
      const own = await freshPath(world, operation);
      for (const segment of operation.pathParams.keys())
        for (const [kind, text] of shareOf(TEXTS, QUERY_SHARE, index + segment)) {
          if (text === "") continue;
          const values = own.with(segment, percentOf(text.slice(0, URL_CHARS)));
          await attack(tally, {
            operation,
            label: `segment ${segment}: ${kind}`,
            path: fill(operation, values),
            body: bodyFor(operation, world, world.home),
          });
        }
    }
    report("paths", tally);
    expect(tally.accepted).toBe(0);
  });

  test("hostile input is harmless in every field of every body: no 500, the envelope, and no header that was not requested", async () => {
    const tally = newTally(world);
    for (const operation of known()) await attackAll(tally, operation, bodyAttacks(operation));
    report("bodies", tally);
    expect(tally.composed).toBeGreaterThan(100);
  });

  test("hostile input is harmless in every value of every query", async () => {
    const tally = newTally(world);
    for (const [index, operation] of known().entries()) {
      const attacks = operation.query.flatMap(({ name }, at) =>
        shareOf([...TEXTS, NO_UTF8], QUERY_SHARE, index + at).map(([kind, text]) => (path: string) => ({
          label: `query ${name}: ${kind}`,
          path: `${path}?${name}=${percentOf(text.slice(0, URL_CHARS))}`,
          body: bodyFor(operation, world, world.home),
        })),
      );
      const odd = [
        "%",
        "%zz",
        "%ff",
        "&&==&",
        "%00=%00",
        "__proto__=1&constructor=2",
        "limit[]=1",
        "a=1;b=2",
      ];
      const whole = shareOf(odd, QUERY_SHARE, index).map((text) => (path: string) => ({
        label: `the query ${text}`,
        path: `${path}${queryFor(operation) || "?"}&${text}`,
        body: bodyFor(operation, world, world.home),
      }));
      await attackAll(tally, operation, [...attacks, ...whole]);
    }
    report("queries", tally);
  });

  test("hostile input is harmless in every header that the service reads, and some that it does not", async () => {
    const tally = newTally(world);
    const pairs = HEADER_NAMES.flatMap((name) => HEADER_VALUES.map((value) => [name, ...value] as const));
    for (const [index, operation] of known().entries()) {
      const attacks = shareOf(pairs, HEADER_SHARE, index).map(([name, kind, value]) => (path: string) => ({
        label: `${name}: ${kind}`,
        path: `${path}${queryFor(operation)}`,
        headers: { [name]: value },
        body: bodyFor(operation, world, world.home),
      }));
      await attackAll(tally, operation, attacks, false);
    }
    report("headers", tally);
  });
});

describe("the head of a request", () => {
  const port = () => world.service.app.ports.http ?? 0;
  const list = (host: string) =>
    `GET /v1/domains HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${world.home.key}\r\n\r\n`;

  test.each(GOOD_HOSTS)("with Host %p is served like any other", async (host) => {
    const { status, body } = await exchangeBytes(port(), list(host), true);
    expect([status, status === 200 ? "" : body]).toEqual([200, ""]);
  });

  test.each(BAD_HOSTS)("with Host %p, which breaks the grammar, is 400", async (host) => {
    const { status, headers, body } = await exchangeBytes(port(), list(host));
    expect([status, headers.get("content-type")]).toEqual([400, "application/json"]);
    expect(JSON.parse(body).error.type).toBe("invalid_request");
    expect(JSON.parse(body).error.requestId).toBe(headers.get("x-request-id"));
  });

  test.each(BAD_HEADS)("with %s is refused by the parser, without repeating it", async (_name, bytes) => {
    const { status, headers, body } = await exchangeBytes(port(), bytes);
    expect([400, 505]).toContain(status);
    expect([headers.has("x-injected"), body]).toEqual([false, ""]);
  });

  // Bun's parser refuses them before any of our code runs, and has no hook for the answer.
  test.each(LARGE_HEADS)("with %s is refused by the parser, without repeating it", async (_name, bytes) => {
    const { status, body } = await exchangeBytes(port(), bytes);
    expect([status, body]).toEqual([431, ""]);
  });
});

describe("the check of composed bytes", () => {
  const good =
    "From: a@b.c\r\nSubject: x\r\nContent-Type: multipart/mixed; boundary=q\r\n\r\n--q\r\nContent-Type: text/plain\r\n\r\nX-A: 1\r\n--q--\r\n";
  const rows: [string, string, string[]][] = [
    ["a good mail", good, []],
    ["a field that was not requested", `X-Injected: 1\r\n${good}`, ["the field x-injected, not asked for"]],
    ["a field twice", `Subject: y\r\n${good}`, ["the field subject twice"]],
    ["a field in a part", good.replace("text/plain", "text/plain\r\nX-B: 1"), ["the field x-b in a part"]],
    ["a bare LF", good.replace("X-A: 1", "X-A:\n1"), ["a bare CR or LF"]],
    ["NUL", good.replace("X-A", "\0"), ["NUL"]],
  ];
  test.each(rows)("the check of composed bytes finds %s", (_name, bytes, faults) => {
    expect(wireFaults(bytes, [])).toEqual(faults);
  });
});
