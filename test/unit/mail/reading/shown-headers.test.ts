import { expect, test } from "bun:test";
import {
  fieldsByName,
  MAX_SHOWN_HEADERS,
  withOwnFields,
} from "../../../../src/mail/reading/shown-headers.ts";

test("a record shows the first header fields of a message up to the limit, and not one more", () => {
  const fields = Array.from({ length: MAX_SHOWN_HEADERS + 1 }, (_, at) => ({ name: `X-${at}`, value: "v" }));
  const shown = Object.keys(fieldsByName(fields));
  expect(shown).toEqual(fields.slice(0, MAX_SHOWN_HEADERS).map(({ name }) => name));
});

test("the topmost of a repeated field is shown, in any letter case", () => {
  const fields = [
    { name: "X-One", value: "first" },
    { name: "x-one", value: "second" },
  ];
  expect(fieldsByName(fields)).toEqual({ "X-One": "first" });
});

test("the service's own fields replace those of the same name that a message brought", () => {
  const trace = "Authentication-Results: mx.example; spf=fail\r\n";
  const brought = { "authentication-results": "mx.example; spf=pass", Subject: "s" };
  expect(withOwnFields(trace, brought)).toEqual({
    "Authentication-Results": "mx.example; spf=fail",
    Subject: "s",
  });
  expect(withOwnFields(null, brought)).toEqual(brought);
});
