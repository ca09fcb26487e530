import { describe, expect, test } from "bun:test";
import {
  MAX_AUTHORIZATIONS,
  readAuthorization,
  readDirectory,
  readOrder,
  readWindow,
} from "../../../../src/net/acme/objects.ts";
import { readProblem } from "../../../../src/net/acme/problem.ts";

const answer = (json: unknown) => ({ text: "", json, location: null, retryAfterMs: 7 });
const ORDER = { status: "pending", authorizations: ["https://ca.test/1"], finalize: "https://ca.test/f" };
const CHALLENGE = { type: "dns-01", url: "https://ca.test/c", token: "t".repeat(22), status: "pending" };
const AUTHORIZATION = {
  identifier: { type: "dns", value: "Mail.Test" },
  status: "pending",
  challenges: [{ type: "http-01", url: "x", token: "y", status: "pending" }, CHALLENGE],
};

describe("what a CA sends", () => {
  test("what a CA sends is read: directory, order, authorization, window", () => {
    const urls = { newNonce: "n", newAccount: "a", newOrder: "o" };
    const meta = { caaIdentities: ["ca.test", 'x" ; other', 5] };
    expect(readDirectory({ ...urls, meta })).toEqual({ ...urls, renewalInfo: null, caaNames: ["ca.test"] });
    expect(readOrder("u", answer(ORDER))).toMatchObject({ url: "u", certificate: null, retryAfterMs: 7 });
    expect(readAuthorization(answer(AUTHORIZATION))).toMatchObject({
      name: "mail.test",
      challenge: { url: CHALLENGE.url, token: CHALLENGE.token, problem: null },
    });
    expect(readAuthorization(answer({ ...AUTHORIZATION, challenges: [] })).challenge).toBeNull();
    const suggestedWindow = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" };
    expect(readWindow(answer({ suggestedWindow }))).toMatchObject({ start: Date.UTC(2026, 0, 1) });
  });

  test.each<[string, () => unknown]>([
    ["directory", () => readDirectory("no object")],
    ["newOrder", () => readDirectory({ newNonce: "n", newAccount: "a" })],
    ["order", () => readOrder("u", answer(null))],
    ["status", () => readOrder("u", answer({ ...ORDER, status: "lost" }))],
    [
      "authorizations",
      () => readOrder("u", answer({ ...ORDER, authorizations: Array(MAX_AUTHORIZATIONS + 1).fill("x") })),
    ],
    ["finalize", () => readOrder("u", answer({ ...ORDER, finalize: 1 }))],
    ["identifier", () => readAuthorization(answer({ ...AUTHORIZATION, identifier: "x" }))],
    [
      "token",
      () => readAuthorization(answer({ ...AUTHORIZATION, challenges: [{ ...CHALLENGE, token: "a b" }] })),
    ],
    ["start", () => readWindow(answer({ suggestedWindow: { end: "2026-01-01T00:00:00Z" } }))],
    ["suggestedWindow", () => readWindow(answer({ suggestedWindow: { start: "soon", end: "late" } }))],
    [
      "suggestedWindow",
      () =>
        readWindow(
          answer({ suggestedWindow: { start: "2026-01-02T00:00:00Z", end: "2026-01-01T00:00:00Z" } }),
        ),
    ],
  ])("what a CA sends is refused by the name of the wrong or missing field: %s", (name, read) => {
    expect(read).toThrow(`the CA sent a wrong or missing "${name}"`);
  });
});

describe("a problem of a CA", () => {
  const type = "urn:ietf:params:acme:error:rejectedIdentifier";

  test("a problem of a CA is told in one line, with those of single names", () => {
    const part = { type: "urn:ietf:params:acme:error:caa", detail: "no", identifier: { value: "a.test" } };
    expect(readProblem({ type, detail: "two\r\nlines\x1b[31m", subproblems: [part] })).toEqual({
      type: "rejectedIdentifier",
      text: "rejectedIdentifier: two lines [31m; a.test: caa: no",
    });
  });

  test("a problem of a CA is told in part if it is long, or of many names", () => {
    const part = { type, detail: "no", identifier: { value: "a.test" } };
    expect(readProblem({ type, detail: "x".repeat(301) })?.text).toBe(
      `rejectedIdentifier: ${"x".repeat(300)}`,
    );
    expect(readProblem({ type, subproblems: Array(4).fill(part) })?.text.split("a.test")).toHaveLength(4);
  });

  test.each([[null], ["text"], [[]], [{}], [{ type: 5 }]])(
    "a problem of a CA is none if it is %p",
    (json: unknown) => {
      expect(readProblem(json)).toBeNull();
    },
  );

  test("a CA's problem of a type outside ACME has no type of ours", () => {
    expect(readProblem({ type: "about:blank", detail: "x" })).toEqual({ type: null, text: "about:blank: x" });
  });
});
