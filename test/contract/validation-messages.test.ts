import { expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { expectationOf } from "../../src/core/expectations.ts";
import { check } from "../../src/core/validation.ts";
import { allRoutes } from "../support/all-routes.ts";

interface Place {
  /** The route and the path of the field, for the report of a failure. */
  name: string;
  schema: TSchema;
}

/** Returns a schema with all schemas in it. */
function placesIn(schema: TSchema, name: string): Place[] {
  const inner: [string, TSchema][] = [
    ...Object.entries((schema.properties ?? {}) as Record<string, TSchema>),
    ...Object.values((schema.patternProperties ?? {}) as Record<string, TSchema>).map(
      (value): [string, TSchema] => ["*", value],
    ),
    ...((schema.anyOf ?? []) as TSchema[]).map((variant, at): [string, TSchema] => [`<${at}>`, variant]),
    ...(schema.items === undefined ? [] : ([["[]", schema.items]] as [string, TSchema][])),
  ];
  return [{ name, schema }, ...inner.flatMap(([field, part]) => placesIn(part, `${name} ${field}`))];
}

const routes = await allRoutes();
const places = routes
  .flatMap(({ method, path, body, query }) => [
    ...(body === undefined ? [] : placesIn(body, `${method} ${path} body`)),
    ...(query === undefined ? [] : placesIn(query, `${method} ${path} query`)),
  ])
  // The value of a template's variable may be anything.
  .filter(({ schema: { type, anyOf, const: text } }) =>
    [type, anyOf, text].some((rule) => rule !== undefined),
  );

/** Returns values of each kind, most of which break any schema. */
function wrongValues({ maxLength = 0, maxItems = 0, minimum = 0, maximum = 0 }: TSchema): unknown[] {
  return [
    null,
    true,
    1.5,
    "",
    "\u0000",
    " \n",
    "&?!",
    [],
    {},
    [null],
    { a: null },
    minimum - 1,
    maximum + 1,
    "x".repeat(maxLength + 1),
    Array(maxItems + 1).fill("x"),
  ];
}

test("the walk finds the routes and their fields", () => {
  expect(new Set(routes.map(({ operationId }) => operationId)).size).toBeGreaterThan(60);
  expect(places.length).toBeGreaterThan(200);
  expect(places.filter(({ schema }) => schema.pattern !== undefined).length).toBeGreaterThan(10);
});

test("every message names the field, what was expected and an example, and shows no pattern", () => {
  let breaches = 0;
  for (const { name, schema } of places) {
    const holder = Type.Object({ field: schema });
    const issues = [{}, ...wrongValues(schema).map((field) => ({ field }))].flatMap((value) =>
      check(holder, value),
    );
    breaches += issues.length;
    for (const { param, message } of issues) {
      const where = `${name}: ${param} ${message}`;
      expect(param, where).toStartWith("field");
      expect(message, where).toMatch(/^(?:must be|is required:) \S.*\.$/);
      expect(message, where).not.toMatch(/\ba value\b|\^|\\u|\[[^\]]*[a-z]-z|string length|Expected/);
      // An example, or all choices.
      expect(message, where).toMatch(
        /, such as \S|: ("[^"]*"|true or false|null)|must be ("[^"]*"|true or false|null)/,
      );
    }
  }
  expect(breaches).toBeGreaterThan(2000);
});

test("every example that a message shows is valid", () => {
  for (const { name, schema } of places) {
    const [, shown] = /, such as (.*)$/.exec(expectationOf(schema)) ?? [];
    if (shown === undefined) continue;
    const examples = shown.split(/ or (?=["{[])/).map((text) => JSON.parse(text));
    for (const example of examples) expect(check(schema, example), `${name}: ${shown}`).toEqual([]);
  }
});
