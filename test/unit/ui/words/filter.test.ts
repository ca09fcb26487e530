import { describe, expect, test } from "bun:test";
import { FIELDS, readFilter } from "../../../../src/core/audience/filter.ts";
import type { PropertyType } from "../../../../src/core/audience/properties.ts";
import {
  type Filter,
  filterOf,
  filterSentence,
  filterText,
  firstCondition,
  formOf,
  isIncomplete,
  OPERATORS,
  operatorText,
  subjectsOf,
} from "../../../../src/ui/words/filter.ts";

const at = "2026-01-01T00:00:00.000Z";
const times = { createdAt: at, updatedAt: at };
const TYPES: readonly PropertyType[] = ["string", "number", "boolean", "date"];
const properties = TYPES.map((type) => ({
  id: `prp_${type}`,
  name: `my_${type}`,
  type,
  fallback: null,
  ...times,
}));
const topic = {
  id: "top_1",
  name: "News",
  description: "",
  defaultSubscribed: true,
  visible: true,
  doubleOptIn: false,
  ...times,
};
const subjects = subjectsOf({ properties, topics: [topic] });
const context = { shapes: properties, topics: [topic], now: Date.parse(at) };

test("the form offers the fields of the API", () => {
  const offered = subjects.flatMap(({ id }) => (id.startsWith("field:") ? [id.slice("field:".length)] : []));
  expect(offered.sort()).toEqual([...FIELDS].sort());
});

test("the form offers the operators of the API for each subject, in words", () => {
  for (const { id } of subjects) {
    const [kind = "", name] = id.split(":");
    const { message } = refusal({ [kind]: name, op: "none" });
    const allowed = [...message.matchAll(/"(\w+)"/g)].map(([, op]) => op).sort();
    const { type } = subjects.find((one) => one.id === id) ?? { type: "string" as const };
    expect(allowed).toEqual([...OPERATORS[type]].sort());
    for (const op of OPERATORS[type]) expect(operatorText(op, type)).toMatch(/^(?:is|[a-z :]{5,})$/);
  }
});

function refusal(filter: Filter): Error {
  try {
    readFilter(filter, context);
  } catch (thrown) {
    return thrown as Error;
  }
  throw new Error("It was not refused.");
}

test("what a form makes of a filter and back is the same filter", () => {
  const deep = { any: [{ property: "my_string", op: "eq", value: "a" }] };
  for (const filter of [
    { all: [{ property: "my_number", op: "gte", value: 4 }, deep] },
    { not: [{ property: "my_boolean", op: "eq", value: false }] },
    {
      any: [
        { field: "createdAt", op: "withinDays", value: 30 },
        { property: "my_date", op: "unset" },
      ],
    },
    {
      all: [
        { topic: "top_1", op: "ne", value: "subscribed" },
        { property: "gone", op: "set" },
      ],
    },
  ])
    expect(filterOf(formOf(filter, subjects), subjects)).toEqual(filter);
  const one = { field: "email", op: "endsWith", value: "@a.test" };
  expect(filterOf(formOf(one, subjects), subjects)).toEqual({ all: [one] });
  expect(filterOf(formOf(null, subjects), subjects)).toBeNull();
});

test("a condition that was just added has its value, or lacks it", () => {
  const lacking = subjects.filter((subject) => isIncomplete(firstCondition(subject))).map(({ id }) => id);
  expect(lacking).toEqual([
    "field:email",
    "field:createdAt",
    "field:lastSentAt",
    "field:lastOpenedAt",
    "field:lastClickedAt",
    "property:my_string",
    "property:my_number",
    "property:my_date",
  ]);
});

test("input that is no number goes to the API as it is", () => {
  const rows = [{ subject: "property:my_number", op: "gt", value: "many" }];
  expect(filterOf({ join: "all", rows }, subjects)).toEqual({
    all: [{ property: "my_number", op: "gt", value: "many" }],
  });
});

describe("a filter as a sentence", () => {
  for (const [filter, text] of [
    [{ property: "my_string", op: "eq", value: "pro" }, "my_string is “pro”"],
    [{ property: "my_number", op: "lte", value: 3 }, "my_number is at most 3"],
    [{ property: "my_boolean", op: "ne", value: true }, "my_boolean is not yes"],
    [{ property: "my_date", op: "lt", value: "2026-01-31" }, "my_date before 2026-01-31"],
    [{ property: "my_date", op: "unset" }, "my_date has no value"],
    [{ field: "createdAt", op: "withinDays", value: 1 }, "created in the last day"],
    [{ field: "createdAt", op: "olderThanDays", value: 7 }, "created more than 7 days ago"],
    [{ field: "subscribed", op: "ne", value: true }, "unsubscribed"],
    [{ field: "lastOpenedAt", op: "withinDays", value: 90 }, "last opened in the last 90 days"],
    [{ field: "lastOpenedAt", op: "unset" }, "never opened"],
    [{ field: "lastClickedAt", op: "set" }, "clicked at least once"],
    [{ topic: "top_1", op: "eq", value: "subscribed" }, "gets “News”"],
    [{ topic: "top_1", op: "ne", value: "subscribed" }, "does not get “News”"],
    [{ topic: "top_gone", op: "eq", value: "subscribed" }, "top_gone is “subscribed”"],
    [{ property: ["no", "filter"] }, '{"property":["no","filter"]}'],
    [
      {
        all: [
          { field: "email", op: "contains", value: "a" },
          {
            any: [
              { property: "my_number", op: "eq", value: 1 },
              { not: [{ field: "subscribed", op: "eq", value: true }] },
            ],
          },
        ],
      },
      "address contains “a” and (my_number is 1 or (not subscribed))",
    ],
    [
      {
        not: [
          { property: "my_number", op: "eq", value: 1 },
          { property: "my_number", op: "eq", value: 2 },
        ],
      },
      "not (my_number is 1 or my_number is 2)",
    ],
  ] as const)
    test(text, () => expect(filterText(filter, subjects)).toBe(text));

  test("begins with a capital, unless that would change the name of a property", () => {
    expect(filterSentence({ field: "subscribed", op: "eq", value: true }, subjects)).toBe("Subscribed");
    expect(filterSentence({ property: "my_date", op: "set" }, subjects)).toBe("my_date has a value");
  });
});
