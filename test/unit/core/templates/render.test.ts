import { describe, expect, test } from "bun:test";
import { AppError } from "../../../../src/core/errors.ts";
import { MAX_SUBJECT_CHARS } from "../../../../src/core/messages/send-item.ts";
import { MAX_BODY_PART_BYTES } from "../../../../src/core/messages/send-rules.ts";
import { MAX_VALUE_DEPTH, RENDER_LIMITS, type RenderLimits } from "../../../../src/core/templates/engine.ts";
import {
  RenderingFailure,
  refusalOf,
  renderTemplate,
  type TemplateSource,
  templateVariables,
} from "../../../../src/core/templates/render.ts";

type Data = Record<string, unknown>;

function source(parts: Partial<TemplateSource>): TemplateSource {
  return { subject: "", html: null, text: null, ...parts };
}

function html(template: string, data: Data = {}, limits = RENDER_LIMITS): string | null {
  return renderTemplate(source({ html: template }), data, limits).html;
}

/** Multiplies a time share, because a busy machine needs a larger one. */
const UNHURRIED = { ...RENDER_LIMITS, renderMs: 20 * RENDER_LIMITS.renderMs };

function failure(run: () => unknown): RenderingFailure {
  try {
    run();
  } catch (error) {
    if (error instanceof RenderingFailure) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("variables are full paths in order of first use, without duplicates and template-local names", () => {
  const rows: [string, string[]][] = [
    ["no placeholder { here }", []],
    ["{{ b }} {{ user.name }} {{ a }} {{ b }} {{ user.name }}", ["b", "user.name", "a"]],
    ["{{ a | default: c | append: d.e }}", ["a", "c", "d.e"]],
    ["{{ a | default: b, allow_false: c }}", ["a", "b", "c"]],
    [
      "{% for item in user.items %}{{ item.name }}{{ forloop.index }}{{ z }}{% endfor %}",
      ["user.items", "z"],
    ],
    ["{% for item in items %}{% endfor %}{{ item.x }}", ["items", "item.x"]],
    [
      "{% for a in b %}{% for c in a.d %}{{ c }}{{ a }}{{ e }}{% endfor %}{% else %}{{ f }}{% endfor %}",
      ["b", "e", "f"],
    ],
    ["{% for i in (1..n) limit: m %}{{ i }}{% endfor %}", ["n", "m"]],
    ["{{ x }}{% assign y = z.w %}{{ y }}{{ y.v }}", ["x", "z.w"]],
    ["{% capture c %}{{ q }}{% endcapture %}{{ c }}", ["q"]],
    ["{% increment n %}{{ n }}", []],
    ["{{ a[b.c].d }}{{ a['x y'] }}{{ a[0].k }}", ["a[b.c].d", "b.c", "a['x y']", "a[0].k"]],
    [
      "{% if u and v == 'q' or w.x > 2 %}{{ k }}{% elsif o %}{% else %}{{ p }}{% endif %}",
      ["u", "v", "w.x", "k", "o", "p"],
    ],
    [
      "{% unless r %}{% endunless %}{% case s %}{% when t, 'x' %}{{ y }}{% when z %}{% endcase %}",
      ["r", "s", "t", "y", "z"],
    ],
    [
      "{% cycle g: a, b %}{% echo e %}{% liquid\n echo f\n assign h = i\n echo h %}",
      ["g", "a", "b", "e", "f", "i"],
    ],
    ["{% tablerow t in rows cols: n %}{{ t.x }}{{ tablerowloop.index }}{% endtablerow %}", ["rows", "n"]],
    ["{% comment %}{{ a }}{% endcomment %}{% raw %}{{ b }}{% endraw %}{% # {{ c }} %}", []],
    ["{{ 'text' }}{{ 1 }}{{ true }}{{ nil }}", []],
    ["{{ naïve }}{{ 用户.名 }}", ["naïve", "用户.名"]],
    ["{{ a.0.b }}{{ a[0].b }}{{ a.10 }}{{ a.007 }}", ["a[0].b", "a[10]", "a['007']"]],
  ];
  test.each(rows)("%s", (template, expected) => {
    expect(templateVariables(source({ html: template }))).toEqual(expected);
  });

  test("subject first, then html, then text", () => {
    const parts = { subject: "{{ s }}{{ both }}", html: "{{ h }}{{ both }}", text: "{{ t }}{{ h }}" };
    expect(templateVariables(parts)).toEqual(["s", "both", "h", "t"]);
  });

  test("variables of a large template are found without scanning its text for each one", () => {
    // The library's own analysis takes half a minute for this template.
    const template = `${"x".repeat(100)}{{ a }}`.repeat(10_000);
    expect(templateVariables(source({ html: template }))).toEqual(["a"]);
  });
});

describe("html escapes every value unless it passes through raw", () => {
  const x = `<b>&"'`;
  const escaped = "&lt;b&gt;&amp;&#34;&#39;";
  const rows: [string, string][] = [
    ["<p>{{ x }}</p>", `<p>${escaped}</p>`],
    ["{{ x | raw }}", x],
    ["{{ x | raw | append: '' }}", escaped],
    ["{{ list }}", "&lt;i&gt;1"],
    ["{% echo x %}", escaped],
    ["{% cycle x, x %}", escaped],
    ["{% liquid\n echo x %}", escaped],
    ["{% for i in list %}{{ i }},{% endfor %}", "&lt;i&gt;,1,,"],
    ["{{ none | default: x }}", escaped],
    ["{{ x | json }}", "&#34;&lt;b&gt;&amp;\\&#34;&#39;&#34;"],
    ["{{ x | escape }}", escaped],
    ["{{ x | escape_once }}", escaped],
    ["{{ '<' | escape | append: '>' }}", "&amp;lt;&gt;"],
    ["{% capture c %}{{ x }}{% endcapture %}{{ c | raw }}", escaped],
  ];
  test.each(rows)("%s", (template, expected) => {
    expect(html(template, { x, list: ["<i>", 1, null] })).toBe(expected);
  });

  test("subject and text are not escaped", () => {
    const rendered = renderTemplate({ subject: "{{ x }}", html: null, text: "{{ x }}" }, { x });
    expect(rendered).toEqual({ subject: x, html: null, text: x, missing: [] });
  });
});

test("conditions, loops and dot paths render", () => {
  const template =
    "{% if user.vip %}Dear {{ user.name }}{% else %}Hi{% endif %}:{% for i in items %} {{ i.n }}{% endfor %}";
  const data = { user: { name: "Ada", vip: true }, items: [{ n: 1 }, { n: 2 }] };
  expect(html(template, data)).toBe("Dear Ada: 1 2");
  expect(html(template, { user: {} })).toBe("Hi:");
});

describe("missing names the absent data, in order of first use", () => {
  const rows: [string, Data, string[]][] = [
    ["{{ b }}{{ a }}{{ b }}", {}, ["b", "a"]],
    ["{{ user.name }}{{ user.age }}", { user: { name: "Ada" } }, ["user.age"]],
    ["{{ user.name }}", { user: "Ada" }, ["user.name"]],
    ["{{ user.name }}", { user: null }, ["user.name"]],
    ["{{ a }}{{ b }}{{ c }}{{ d }}", { a: null, b: "", c: 0, d: false }, []],
    ["{{ a | default: 'x' }}", {}, ["a"]],
    ["{% if no %}{{ hidden }}{% endif %}", { no: false }, ["hidden"]],
    ["{{ a.size }}{{ a.first }}{{ a[1] }}{{ a[2] }}", { a: [1, 2] }, ["a[2]"]],
    ["{{ a[b].c }}", { a: { k: { c: 1 } }, b: "k" }, []],
    ["{{ a[b].c }}", { a: {}, b: "k" }, ["a[b].c"]],
    ["{{ a[b].c }}", { a: {} }, ["a[b].c", "b"]],
    [
      "{{ toString }}{{ constructor.name }}{{ a.__proto__ }}",
      { a: {} },
      ["toString", "constructor.name", "a.__proto__"],
    ],
    ["{% for i in items %}{{ i.none }}{% endfor %}", { items: [{}] }, []],
  ];
  test.each(rows)("%s with %j", (template, data, missing) => {
    expect(renderTemplate(source({ html: template }), data).missing).toEqual(missing);
  });

  test("missing values render as empty strings", () => {
    expect(html("[{{ a }}{{ b.c }}{{ toString }}{{ constructor.name }}]")).toBe("[]");
  });
});

test("a name that every object inherits is read only if the data has it", () => {
  const data: Data = JSON.parse('{"__proto__":{"x":"own"},"constructor":"too"}');
  expect(html("{{ __proto__.x }} {{ constructor }}", data)).toBe("own too");
});

describe.each([
  "toString",
  "valueOf",
  "constructor",
  "__proto__",
  "hasOwnProperty",
  "isPrototypeOf",
  "toLocaleString",
  "propertyIsEnumerable",
  "__defineGetter__",
  "__lookupGetter__",
  "toJSON",
  "then",
  "next",
  "toLiquid",
  "size",
])("a key named %s", (name) => {
  const own: Data = JSON.parse(
    `{"${name}": "own", "a": {"${name}": "its"}, "items": [{"${name}": "one"}, {"n": 1}]}`,
  );

  test("is read if the data has it", () => {
    const template = `{{ ${name} }} {{ a.${name} }} {{ a["${name}"] }} {% for i in items %}{{ ${name} }}{% endfor %}
      {{ items | map: "${name}" | first }} {{ items | where: "${name}", "one" | size }}
      {%- assign of = items | group_by: "${name}" | first %} {{ of.name }}`;
    expect(html(template, own)?.replace(/\s+/g, " ")).toBe("own its its ownown one 1 one");
    expect(renderTemplate(source({ html: template }), own).missing).toEqual([]);
  });

  test("is missing if the data lacks it", () => {
    const template = `[{{ ${name} }}{{ a.b.${name} }}]{{ items | where: "${name}" | size }}`;
    const { html: output, missing } = renderTemplate(source({ html: template }), { a: {}, items: [{}] });
    expect({ output, missing }).toEqual({ output: "[]0", missing: [name, `a.b.${name}`] });
  });

  test("can be used in a count", () => {
    expect(html(`{% increment ${name} %}{% increment ${name} %}`)).toBe("01");
  });

  test("a missing name in an object does not change how the object is printed, compared and sorted", () => {
    const template = `{{ a }}{{ "" | append: a | upcase }}{{ items | sort | size }}{% if a > 1 %}{% endif %}
      {%- for i in items limit: a %}{% endfor %}{{ items | join: "," }}{{ items[a] }}{{ a | json }}`;
    const any: Data = JSON.parse(JSON.stringify(own).replaceAll(name, "any"));
    const expected = html(template, any)?.replaceAll("any", name);
    expect(html(template, own)).toBe(expected ?? null);
  });

  test.each(["forloop", "tablerowloop", "empty", "blank", "nil"])("leads nowhere from %s", (object) => {
    const tag = object === "tablerowloop" ? "tablerow" : "for";
    const around = (inner: string): string | null => html(`{% ${tag} i in (1..1) %}${inner}{% end${tag} %}`);
    expect(around(`[{{ ${object}.${name} }}{{ ${object}.${name}.constructor }}]`)).toBe(around("[]"));
  });
});

test("a loop exposes its position", () => {
  const facts = ["name", "length", "index", "index0", "rindex", "rindex0", "first", "last"];
  const loop = `{% for i in (1..3) limit: 1 %}${facts.map((fact) => `{{ forloop.${fact} }} `).join("")}{% endfor %}`;
  expect(html(loop)).toBe("i-(1..3) 1 1 0 1 0 true true ");
  const cells = ["row", "col", "col0", "col_first", "col_last"];
  const table = `{% tablerow i in (1..1) %}${cells.map((fact) => `{{ tablerowloop.${fact} }} `).join("")}{% endtablerow %}`;
  expect(html(table)).toContain(">1 1 0 true true <");
});

describe("a subject is one line", () => {
  const rows: [string, Data, string][] = [
    ["Hi {{ name }}", { name: "Ada\r\nBcc: eve@example.com" }, "Hi Ada Bcc: eve@example.com"],
    ["a\nb\rc\r\nd", {}, "a b c d"],
    ["{{ x }}", { x: "a\u0000b\u001b[1m\tc" }, "a b [1m c"],
  ];
  test.each(rows)("%j with %j", (subject, data, expected) => {
    expect(renderTemplate(source({ subject }), data).subject).toBe(expected);
  });
});

describe("a template that cannot be parsed is a failure of its part, and saving it answers 422", () => {
  const rows: [string, string][] = [
    ["{{ a ", "not closed"],
    ["{% if a %}", "not closed"],
    ["{% endif %}", "endif"],
    ["{{ }}", "invalid value"],
    ["{{ a | nofilter }}", "undefined filter: nofilter"],
    ["{% nosuchtag %}", "nosuchtag"],
    ["{% include 'x' %}", "include"],
    ["{% render '/etc/passwd' %}", "render"],
    ["{% layout 'x' %}", "layout"],
    ["{{ a | where_exp: 'i', 'i.x' }}", "where_exp"],
    ["{% if a %}".repeat(9_000), ""],
    [`{{ ${"a[".repeat(40_000)}`, ""],
  ];
  test.each(rows)("%#: %.40s", (template, message) => {
    for (const part of ["subject", "html", "text"] as const) {
      const failed = failure(() => templateVariables(source({ [part]: template })));
      expect([failed.part, failed.kind]).toEqual([part, "syntax"]);
      expect(failed.message).toContain(message);
      expect(failed.message.length).toBeLessThanOrEqual(300);
      const refusal = refusalOf(failed);
      expect(refusal).toBeInstanceOf(AppError);
      expect([refusal.type, refusal.details.param, refusal.details.code]).toEqual([
        "validation_error",
        part,
        undefined,
      ]);
    }
    expect(failure(() => renderTemplate(source({ text: template }), {})).kind).toBe("syntax");
  });

  test("an error message never cuts a surrogate pair", () => {
    const messages = [0, 1].map(
      (shift) => failure(() => html(`{% ${"x".repeat(shift)}${"😀".repeat(300)} %}`)).message,
    );
    expect(messages.map((message) => message.isWellFormed())).toEqual([true, true]);
  });
});

describe("each limit accepts its value and refuses one more", () => {
  const nested = (depth: number): unknown => (depth === 0 ? "x" : [nested(depth - 1)]);
  const limits = (changes: Partial<RenderLimits>): RenderLimits => ({ ...RENDER_LIMITS, ...changes });
  const code = "{{a}}{% if a %}{% endif %}";
  const paths = (within: number) => `{{ ${"a[".repeat(within + 1)}0${"]".repeat(within + 1)} }}`;
  interface Row {
    name: string;
    parts: Partial<TemplateSource>;
    data?: Data;
    limits?: RenderLimits;
    fails: "syntax" | "rendering" | null;
  }
  const rows: Row[] = [
    {
      name: "code at its limit",
      parts: { html: `{text}${code}` },
      limits: limits({ codeChars: code.length }),
      fails: null,
    },
    {
      name: "code past its limit",
      parts: { html: code },
      limits: limits({ codeChars: code.length - 1 }),
      fails: "syntax",
    },
    {
      name: "code at the limit that is set",
      parts: { html: "{{a}}".repeat(RENDER_LIMITS.codeChars / 5) },
      limits: limits({ renderMs: 60_000 }),
      fails: null,
    },
    {
      name: "code past the limit that is set",
      parts: { html: `${"{{a}}".repeat(RENDER_LIMITS.codeChars / 5)}{{a}}` },
      fails: "syntax",
    },
    ...[
      { name: "after a quoted end", parts: { html: `{{ '}}' ${"|upcase".repeat(20_000)} }}` } },
      {
        name: "after an opening that `raw` shows",
        parts: { html: `{% raw %}{{ {% endraw %}${"{% if a %}{% endif %}".repeat(6_000)}` },
      },
    ].map(
      ({ name, parts }): Row => ({ name: `code past the limit that is set ${name}`, parts, fails: "syntax" }),
    ),
    {
      name: "text that `raw` shows past the limit for code",
      parts: { html: `{% raw %}${"{{ a }}".repeat(20_000)}{% endraw %}` },
      fails: null,
    },
    {
      name: "nested paths at their limit",
      parts: { html: paths(20) },
      data: { a: [0] },
      fails: null,
    },
    { name: "nested paths past it", parts: { html: paths(21) }, fails: "syntax" },
    { name: "work at its limit", parts: { html: "abc" }, limits: limits({ workUnits: 3 }), fails: null },
    { name: "work past it", parts: { html: "abc" }, limits: limits({ workUnits: 2 }), fails: "rendering" },
    {
      name: "depth at its limit",
      parts: { html: "{{ a }}" },
      data: { a: nested(MAX_VALUE_DEPTH) },
      fails: null,
    },
    {
      name: "depth past it",
      parts: { html: "{{ a }}" },
      data: { a: nested(MAX_VALUE_DEPTH + 1) },
      fails: "rendering",
    },
    {
      name: "a subject at its limit",
      parts: { subject: "{{ a }}" },
      data: { a: "x".repeat(MAX_SUBJECT_CHARS) },
      fails: null,
    },
    {
      name: "a subject past it",
      parts: { subject: "{{ a }}" },
      data: { a: "x".repeat(MAX_SUBJECT_CHARS + 1) },
      fails: "rendering",
    },
    {
      name: "html at its limit",
      parts: { html: "{{ a }}" },
      data: { a: "x".repeat(MAX_BODY_PART_BYTES) },
      fails: null,
    },
    {
      name: "html past it",
      parts: { html: "{{ a }}é" },
      data: { a: "x".repeat(MAX_BODY_PART_BYTES - 1) },
      fails: "rendering",
    },
    {
      name: "text at its limit",
      parts: { text: "{{ a }}" },
      data: { a: "x".repeat(MAX_BODY_PART_BYTES) },
      fails: null,
    },
    {
      name: "text past it",
      parts: { text: "{{ a }}x" },
      data: { a: "x".repeat(MAX_BODY_PART_BYTES) },
      fails: "rendering",
    },
    {
      name: "rendering within its time",
      parts: { html: "{% for i in (1..10) %}{% endfor %}" },
      fails: null,
    },
    {
      name: "rendering past its time",
      parts: { html: "{% for i in (1..99999) %}{% for j in (1..99999) %}{% endfor %}{% endfor %}" },
      limits: limits({ renderMs: 20 }),
      fails: "rendering",
    },
  ];
  for (const { name, parts, data, limits: of, fails } of rows)
    test(name, () => {
      const run = () => renderTemplate(source(parts), data ?? { a: "" }, of);
      if (fails === null) expect(run().missing).toEqual([]);
      else expect(failure(run).kind).toBe(fails);
    });
});

describe("neither a template nor its data can block the process", () => {
  const big = "x".repeat(1_000_000);
  let deep: unknown = "x";
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  const path = "b.".repeat(2000);
  const many = Array.from({ length: 1000 }, () => ({ b: 1 }));
  const numbers = Array.from({ length: 400_000 }, (_, at) => at);
  let tower: unknown = Array.from({ length: 20_000 }, () => 1);
  for (let depth = 0; depth < 90; depth++) tower = [tower];
  const format = "%c".repeat(1_000_000);
  const data: Data = { list: [1, 2], big, deep, path, many, numbers, tower, format, formats: [format] };
  const byPath = [
    "find",
    "find_index",
    "group_by",
    "has",
    "map",
    "reject",
    "sort",
    "sort_natural",
    "sum",
    "where",
  ];
  const byItem = [...byPath, "compact", "uniq"];
  const rows: string[] = [
    "{% for i in (1..1000000000) %}{% endfor %}",
    "{% for i in (1..100000) %}{{ big | raw }}{% endfor %}",
    `{% for i in (1..100000) %}${big}{% endfor %}`,
    `{% capture c %}{% for i in (1..100000) %}${big}{% endfor %}{% endcapture %}{% if c contains 'y' %}{% endif %}`,
    "{% assign s = 'x' %}{% for i in (1..64) %}{% assign s = s | append: s %}{% endfor %}{{ s }}",
    "{% assign a = list %}{% for i in (1..64) %}{% assign a = a | push: a %}{% endfor %}{{ a }}",
    "{% assign a = list %}{% for i in (1..64) %}{% assign a = a | concat: a %}{% endfor %}{{ a }}",
    "{% assign a = list %}{% for i in (1..64) %}{% assign a = a | concat: a | group_by: 'k' | map: 'items' %}{% endfor %}{{ a }}",
    "{{ big | split: '' | join: big }}",
    "{{ big | replace: '', big }}",
    "{{ 0 | date: '%999999999d' }}",
    "{{ 0 | date: format | size }}",
    "{{ 0 | date: formats | size }}",
    "{{ 'a' | slice: 0, 999999999 }}",
    "{{ deep }}",
    "{{ deep | json }}",
    "{{ deep | join }}",
    ...byPath.map((filter) => `{{ many | ${filter}: path, 2 | size }}`),
    ...byItem.map((filter) => `{{ numbers | ${filter} | size }}`),
    ...["json", "jsonify", "inspect"].map((filter) => `{{ tower | ${filter}: 10 | size }}`),
  ];
  test.each(rows)("%#: %.60s", (template) => {
    expect(failure(() => html(template, data)).kind).toBe("rendering");
  });

  test.each([
    ...byItem.map((filter) => `{{ many | ${filter}: 'b' | size }}`),
    "{{ tower | json | size }}",
    "{% for n in numbers limit: 20000 %}{% assign d = n | date: '%Y-%m-%dT%H:%M:%S' %}{% endfor %}",
  ])("%#: %.60s is not an error", (template) => {
    expect(html(template, data, UNHURRIED)).toMatch(/^\d*$/);
  });

  test("a filter that throws is a failure with a code, without internal details", () => {
    const failed = failure(() => html("{{ '%' | url_decode }}"));
    expect([failed.part, failed.kind]).toEqual(["html", "rendering"]);
    expect(failed.message).not.toContain("node_modules");
    expect(refusalOf(failed).details).toMatchObject({ param: "html", code: "rendering_failure" });
  });
});

test("rendering does not change the data, and each part has its own limits", () => {
  const data = { n: 5 };
  const parts = { subject: "{% increment n %}", html: "{% increment n %}", text: "{% increment n %}" };
  expect(renderTemplate(parts, data)).toEqual({ subject: "5", html: "5", text: "5", missing: [] });
  expect(data).toEqual({ n: 5 });
});

test("hostile text is kept unchanged", () => {
  const x = "\u202ea\u{1f600}\u2028\ud800b";
  expect(renderTemplate(source({ text: `${x}{{ x }}` }), { x }).text).toBe(x + x);
});
