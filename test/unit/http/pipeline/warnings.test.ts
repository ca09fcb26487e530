import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { SendItem } from "../../../../src/core/messages/send-item.ts";
import { MAX_STEPS, MAX_UNKNOWN_FIELDS, unknownFields } from "../../../../src/http/pipeline/warnings.ts";

const pairs = (body: unknown) => unknownFields(SendItem, body).map(({ param, meant }) => [param, meant]);

describe("a field that a send ignores", () => {
  test.each([
    ["scheduled_at", "scheduledAt"],
    ["ScheduledAt", "scheduledAt"],
    ["schedule-dat", "scheduledAt"],
    ["sheduledAt", "scheduledAt"],
    ["schedueldAt", "scheduledAt"],
    ["reply_to", "replyTo"],
    ["HTML", "html"],
    ["attachment", "attachments"],
    ["unsubscribe_link", "unsubscribeLink"],
  ])("a field that a send ignores is found with the field that it resembles: %s", (name, meant) => {
    expect(pairs({ [name]: "x" })).toEqual([[name, meant]]);
  });

  test.each(["future", "scheduled", "x".repeat(1000), "__proto__", "constructor", ""])(
    "a field that a send ignores is passed over if it resembles none: %p",
    (name) => {
      expect(pairs(JSON.parse(JSON.stringify({ [name === "" ? "" : name]: 1 })))).toEqual([]);
    },
  );

  test("a field that a send ignores is not looked for in an object where a list is meant, nor in a list where an object is meant", () => {
    expect(pairs({ tags: { nmae: "a" }, attachments: { length: 1 }, tracking: [{ open: true }] })).toEqual(
      [],
    );
  });

  test("a field that a send ignores is found in lists and objects, under its path", () => {
    const body = {
      from: { email: "a@example.com", Name: "A" },
      to: ["b@example.com", { email: "c@example.com", nmae: "C" }],
      attachments: [{ filename: "a", content: "", content_type: "text/plain" }],
      tracking: { open: true },
    };
    expect(pairs(body)).toEqual([
      ["from.Name", "name"],
      ["to[1].nmae", "name"],
      ["attachments[0].content_type", "contentType"],
      ["tracking.open", "opens"],
    ]);
  });

  test("a field that a send ignores is not looked for in a value of another kind than the field's", () => {
    expect(pairs({ tags: { nmae: 1 }, attachments: { length: 1 }, tracking: [{ open: true }] })).toEqual([]);
  });

  test("a field that a send ignores is not looked for if the object may have any names", () => {
    expect(pairs({ data: { scheduled_at: 1, To: 2 }, headers: { Subjekt: "x" } })).toEqual([]);
  });
});

test("the fields found, and the names looked at, have a limit", () => {
  const schema = Type.Object({ list: Type.Array(Type.Object({ name: Type.String() })) });
  const list = Array(MAX_UNKNOWN_FIELDS + 1).fill({ nmae: 1 });
  expect(unknownFields(schema, { list })).toHaveLength(MAX_UNKNOWN_FIELDS);
  let reads = 0;
  const counted = new Proxy(Array(200_000).fill({}), {
    get(target, name, receiver) {
      if (/^\d+$/.test(String(name))) reads++;
      return Reflect.get(target, name, receiver);
    },
  });
  unknownFields(schema, { list: counted });
  expect(reads).toBeLessThanOrEqual(MAX_STEPS);
  const late = [...Array(MAX_STEPS).fill({}), { nmae: 1 }];
  expect(unknownFields(schema, { list: late })).toEqual([]);
});
