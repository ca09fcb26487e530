import { describe, expect, test } from "bun:test";
import { changedUrl, match } from "../../../src/ui/state/paths.ts";

describe("a path of the dashboard", () => {
  test.each([
    ["/messages/:id", "/messages/msg_1", { id: "msg_1" }],
    ["/messages/:id", "/messages/a%20b", { id: "a b" }],
    ["/messages", "/messages/", {}],
    ["/", "/", {}],
    ["/messages/:id", "/messages", null],
    ["/messages/:id", "/messages/", null],
    ["/messages", "/messages/msg_1", null],
    ["/messages/:id", "/threads/thr_1", null],
  ])("%s takes %s as %p", (pattern, path, params) => {
    expect(match(pattern, path)).toEqual(params);
  });

  test("a path of the dashboard with a broken escape is taken as it is", () => {
    expect(match("/messages/:id", "/messages/%zz")).toEqual({ id: "%zz" });
  });
});

describe("a changed query", () => {
  test.each([
    ["", { status: "bounced" }, "/messages?status=bounced"],
    ["?status=bounced&q=ana", { status: null }, "/messages?q=ana"],
    ["?q=ana", { q: "" }, "/messages"],
    ["?q=ana", { q: "a&b" }, "/messages?q=a%26b"],
  ])("a changed query of %p with %p is %s", (search, changes, url) => {
    expect(changedUrl("/messages", search, changes)).toBe(url);
  });
});
