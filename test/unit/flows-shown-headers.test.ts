import { expect, test } from "bun:test";
import { fieldsByName, MAX_SHOWN_HEADERS, withOwnFields } from "../../src/flows/receive/shown-headers.ts";

test("a record shows the first fields of a mail up to their number, and not one more", () => {
  const fields = Array.from({ length: MAX_SHOWN_HEADERS + 1 }, (_, at) => ({ name: `X-${at}`, value: "v" }));
  const shown = Object.keys(fieldsByName(fields));
  expect(shown).toEqual(fields.slice(0, MAX_SHOWN_HEADERS).map(({ name }) => name));
});

test("of a name that comes twice the topmost field is shown, in any case of letters", () => {
  const fields = [
    { name: "X-One", value: "first" },
    { name: "x-one", value: "second" },
  ];
  expect(fieldsByName(fields)).toEqual({ "X-One": "first" });
});

test("our own fields go before those that a mail brought along under the same name", () => {
  const trace = "Authentication-Results: mx.example; spf=fail\r\n";
  const brought = { "authentication-results": "mx.example; spf=pass", Subject: "s" };
  expect(withOwnFields(trace, brought)).toEqual({
    "Authentication-Results": "mx.example; spf=fail",
    Subject: "s",
  });
  expect(withOwnFields(null, brought)).toEqual(brought);
});
