import { afterAll, beforeAll, describe, expect } from "bun:test";
import { ConstraintError } from "../../src/store/engine/client.ts";
import {
  deleteTemplate,
  findTemplate,
  freeSlug,
  insertTemplate,
  listTemplates,
  MAX_PAGE_OCTETS,
  MAX_SLUG_CHARS,
  MAX_SLUG_NUMBER,
  replaceTemplate,
  type SavedTemplate,
  variablesOfTemplate,
} from "../../src/store/projects/templates.ts";
import { test } from "../support/engine-test.ts";
import { type TestApi, testApi } from "../support/api.ts";

const NOW = 1_750_000_000_000;
let api: TestApi;
let mine: string;
let theirs: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  theirs = api.acme.b.id;
});
afterAll(() => api.close());

const idOf = (last: string) => `tpl_${last.padStart(26, "0")}`;

function template(last: string, changes: Partial<SavedTemplate> = {}): SavedTemplate {
  return {
    id: idOf(last),
    senderId: mine,
    slug: `slug-${last}`,
    name: "n",
    subject: "s",
    html: null,
    text: "t",
    variables: ["a.b", "c"],
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

const save = (...templates: SavedTemplate[]) => api.db.write(templates.map(insertTemplate));

describe("a saved template", () => {
  test("a saved template is found by id or slug only in its own project", async () => {
    const saved = template("1");
    await save(saved);
    expect(await findTemplate(api.db, mine, saved.id)).toEqual(saved);
    expect(await findTemplate(api.db, mine, "slug-1")).toEqual(saved);
    for (const name of [saved.id, "slug-1"]) expect(await findTemplate(api.db, theirs, name)).toBeNull();
    for (const name of ["", idOf("2"), "SLUG-1", "%"])
      expect(await findTemplate(api.db, mine, name)).toBeNull();
    const variables = (project: string, name: string) => variablesOfTemplate(api.db, project, name);
    for (const name of [saved.id, "slug-1"])
      expect([await variables(mine, name), await variables(theirs, name)]).toEqual([saved.variables, null]);
    for (const name of ["", idOf("2"), "SLUG-1"]) expect(await variables(mine, name)).toBeNull();
  });

  test("a saved template has a slug that no other template of the project has", async () => {
    await save(template("3"));
    const error = await save(template("4", { slug: "slug-3" })).catch((thrown: unknown) => thrown);
    expect(error instanceof ConstraintError && error.unique).toBe("templates.sender_id, templates.slug");
    await save(template("5", { slug: "slug-3", senderId: theirs }));
  });

  test("a saved template is replaced only if it has not changed since it was read", async () => {
    const before = template("6", { html: "<p>", text: null });
    await save(before);
    const after = { ...before, subject: "new", html: null, text: "x", variables: ["x"], updatedAt: NOW + 1 };
    const stale: Partial<SavedTemplate>[] = [
      { html: "<b>" },
      { html: null },
      { text: "" },
      { subject: "S" },
      { slug: "other" },
      { name: "other" },
      { senderId: theirs },
    ];
    for (const change of stale)
      expect(await replaceTemplate(api.db, { ...before, ...change }, after)).toBe(false);
    expect(await findTemplate(api.db, mine, before.id)).toEqual(before);
    expect(await replaceTemplate(api.db, before, after)).toBe(true);
    expect(await findTemplate(api.db, mine, before.id)).toEqual(after);
    expect(await replaceTemplate(api.db, before, after)).toBe(false);
  });

  test("a saved template is deleted once, and only in its own project", async () => {
    await save(template("7"), template("8"));
    for (const name of [idOf("7"), "slug-7"]) expect(await deleteTemplate(api.db, theirs, name)).toBe(false);
    expect(await deleteTemplate(api.db, mine, idOf("7"))).toBe(true);
    expect(await deleteTemplate(api.db, mine, "slug-7")).toBe(false);
    expect(await deleteTemplate(api.db, mine, "slug-8")).toBe(true);
  });
});

test("templates are listed newest first, in pages, and only the project's own", async () => {
  const senderId = api.other.a.id;
  await save(...["a1", "a2", "a3"].map((last) => template(last, { senderId })));
  const ids = async (after: string | null, take: number) =>
    (await listTemplates(api.db, senderId, after, take)).templates.map(({ id }) => id);
  expect(await ids(null, 2)).toEqual([idOf("a3"), idOf("a2")]);
  expect(await ids(idOf("a2"), 2)).toEqual([idOf("a1")]);
  expect(await ids(idOf("a1"), 2)).toEqual([]);
});

test("a page of templates ends where the next one would make it too large, and its cursor continues there", async () => {
  const senderId = api.other.b.id;
  const sizes = { d1: 1, d2: MAX_PAGE_OCTETS - 1, d3: 1, d4: MAX_PAGE_OCTETS + 1, d5: MAX_PAGE_OCTETS };
  // In bytes, not characters; html and text together.
  const parts = (octets: number) => ({ text: "x".repeat(octets % 2), html: "é".repeat(octets >> 1) });
  for (const [last, octets] of Object.entries(sizes))
    await save(template(last, { senderId, ...parts(octets) }));
  const page = async (after: string | null, take: number) => {
    const { templates, stoppedAt } = await listTemplates(api.db, senderId, after, take);
    return [templates.map(({ id }) => id), stoppedAt];
  };
  expect(await page(null, 9)).toEqual([[idOf("d5")], idOf("d5")]);
  expect(await page(idOf("d5"), 9)).toEqual([[idOf("d4")], idOf("d4")]);
  expect(await page(idOf("d4"), 9)).toEqual([[idOf("d3"), idOf("d2")], idOf("d2")]);
  expect(await page(idOf("d4"), 2)).toEqual([[idOf("d3"), idOf("d2")], null]);
  expect(await page(idOf("d2"), 9)).toEqual([[idOf("d1")], null]);
});

describe("a free slug", () => {
  const senderId = () => api.other.b.id;
  let made = 0;
  const take = (...slugs: string[]) =>
    save(...slugs.map((slug) => template(`f${++made}`, { slug, senderId: senderId() })));
  const free = (base: string) => freeSlug(api.db, senderId(), base);

  test("a free slug is the first that is not taken", async () => {
    expect(await free("base")).toBe("base");
    await take("base", "base-3", "base-2x");
    expect(await free("base")).toBe("base-2");
    expect(await freeSlug(api.db, mine, "base")).toBe("base");
  });

  test("a free slug is cut if its number would make it too long, and never ends in two hyphens there", async () => {
    const long = "y".repeat(MAX_SLUG_CHARS);
    const hyphened = `${"z".repeat(MAX_SLUG_CHARS - 3)}-zz`;
    await take(long, hyphened);
    expect(await free(long)).toBe(`${"y".repeat(MAX_SLUG_CHARS - 2)}-2`);
    expect(await free(hyphened)).toBe(`${"z".repeat(MAX_SLUG_CHARS - 3)}-2`);
  });

  test("a free slug is searched up to its last number", async () => {
    const numbered = (number: number) => `full-${number}`;
    const slugs = ["full", ...Array.from({ length: MAX_SLUG_NUMBER - 2 }, (_, index) => numbered(index + 2))];
    await take(...slugs);
    expect(await free("full")).toBe(numbered(MAX_SLUG_NUMBER));
    await take(numbered(MAX_SLUG_NUMBER));
    expect(await free("full")).toBeNull();
  });
});
