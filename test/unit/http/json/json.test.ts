import { describe, expect, test } from "bun:test";
import { AppError } from "../../../../src/core/errors.ts";
import { ERROR_STATUS } from "../../../../src/http/routing/errors.ts";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { readJson } from "../../../../src/http/json/build.ts";
import { fingerprint } from "../../../../src/http/json/fingerprint.ts";
import {
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  MAX_KEY_OCTETS,
  MAX_TOKEN_OCTETS,
} from "../../../../src/http/json/scanner.ts";
import { createStepRunner, runAtOnce, STEP_OCTETS } from "../../../../src/http/json/steps.ts";

const read = (text: string | Buffer): unknown => runAtOnce(readJson(Buffer.from(text as string)));

/** The status that text is refused with; 200: it is read. */
function statusOf(text: string): number {
  try {
    read(text);
    return 200;
  } catch (error) {
    return error instanceof AppError ? ERROR_STATUS[error.type] : 0;
  }
}

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const list = (count: number) => `[${Array.from({ length: count }, () => "0").join(",")}]`;
const long = "x".repeat(STEP_OCTETS);

/** An object whose keys, with their quotes, have that many bytes together. */
function keysOf(octets: number): string {
  const each = MAX_TOKEN_OCTETS / 2;
  const whole = Math.floor(octets / each) - 1;
  const keys = Array.from({ length: whole }, (_, at) => String(at).padStart(each - 2, "k"));
  keys.push("z".repeat(octets - whole * each - 2));
  return `{${keys.map((key) => `"${key}":0`).join(",")}}`;
}

describe("limits of JSON", () => {
  const rows: [string, string, number][] = [
    ["as deep as the limit", nested(MAX_JSON_DEPTH), 200],
    ["one level past it", nested(MAX_JSON_DEPTH + 1), 422],
    [
      "one level past it, by objects",
      `${'{"a":'.repeat(MAX_JSON_DEPTH + 1)}0${"}".repeat(MAX_JSON_DEPTH + 1)}`,
      422,
    ],
    ["brackets in a string, however many", JSON.stringify("[".repeat(1000)), 200],
    ["as many values as the limit, the list itself counted", list(MAX_JSON_VALUES - 1), 200],
    ["one value past it", list(MAX_JSON_VALUES), 422],
    [
      "keys count with their values",
      `{${Array.from({ length: MAX_JSON_VALUES / 2 }, (_, at) => `"${at}":0`).join(",")}}`,
      422,
    ],
    ["empty containers count", `[${"[],".repeat(MAX_JSON_VALUES)}0]`, 422],
    ["a number as long as a token may be", "1".repeat(MAX_TOKEN_OCTETS), 200],
    ["a number one octet longer", "1".repeat(MAX_TOKEN_OCTETS + 1), 422],
    ["a key as long as a token may be", `{"${"k".repeat(MAX_TOKEN_OCTETS - 2)}":0}`, 200],
    ["a key one octet longer", `{"${"k".repeat(MAX_TOKEN_OCTETS - 1)}":0}`, 422],
    ["keys as long as all of them may be", keysOf(MAX_KEY_OCTETS), 200],
    ["keys one octet longer", keysOf(MAX_KEY_OCTETS + 1), 422],
    ["white space as long as a token may be", `[${" ".repeat(MAX_TOKEN_OCTETS)}0]`, 200],
    ["white space one octet longer", `[${" ".repeat(MAX_TOKEN_OCTETS + 1)}0]`, 422],
    ["white space around the whole text, however long", `${" ".repeat(1e6)}[0]${"\n".repeat(1e6)}`, 200],
  ];
  test.each(rows)("%s", (_name, text, status) => expect(statusOf(text)).toBe(status));

  test("limits of JSON are found before any of the text is parsed", () => {
    expect(statusOf(`[nonsense,${nested(MAX_JSON_DEPTH)}]`)).toBe(422);
  });
});

describe("large JSON that is none is refused, whatever is around its large part", () => {
  const rows = [
    `["${long}",]`,
    `["${long}" 1]`,
    `[1 "${long}"]`,
    `[,"${long}"]`,
    `["${long}":1]`,
    `["${long}"`,
    `["${long}"]]`,
    `["${long}"}`,
    `"${long}" 1`,
    `1 "${long}"`,
    `"${long}",`,
    `"${long}`,
    `{"a" "${long}"}`,
    `{"a"::"${long}"}`,
    `{:"a" "${long}"}`,
    `{a:"${long}"}`,
    `{"a":"${long}",}`,
    `{"a":1 "b":"${long}"}`,
    `{"${"k".repeat(100)}":"${long}","b"}`,
    `["${long}\n"]`,
    `["${long}\\x"]`,
    `["${long}\\u12"]`,
    `["${long}\\`,
    `[[${long.replaceAll("x", "0,")}],1]`,
  ];
  test.each(rows.map((text) => [text.replace(long, "…"), text] as const))("%s", (_shown, text) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(statusOf(text)).toBe(400);
  });
});

/** Numbers from 0 up to below 1, the same ones from one run to the next. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const LETTERS = ["a", '"', "\\", "\n", "é", "€", "\u{1F4EE}", "\ud800", "/", "{", "]", ",", " "];

/** JSON text of a random value, of about that many octets, with white space and escapes of all kinds. */
function randomText(next: () => number, octets: number, depth = 0): string {
  const space = () => [" ", "\n\t", "", "", ""][Math.floor(next() * 5)] ?? "";
  if (depth > 6 || octets < 200) {
    const kind = Math.floor(next() * 4);
    return kind === 0 ? String(next() * 1e6) : kind === 1 ? "null" : string(next, octets);
  }
  if (next() < 0.2) return string(next, octets);
  const parts: string[] = [];
  const isList = next() < 0.5;
  for (let left = octets; left > 0; ) {
    const size = next() < 0.7 ? next() * 100 : next() * left;
    left -= size + 10;
    const value = `${space()}${randomText(next, size, depth + 1)}${space()}`;
    const key = next() < 0.05 ? '"__proto__"' : string(next, next() * 20);
    parts.push(isList ? value : `${space()}${key}${space()}:${value}`);
  }
  return isList ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
}

function string(next: () => number, octets: number): string {
  const letters = next() < 0.5 ? LETTERS : LETTERS.slice(0, 1);
  const count = Math.ceil(octets / 2);
  const text = Array.from({ length: count }, () => letters[Math.floor(next() * letters.length)]).join("");
  const quoted = JSON.stringify(text);
  if (next() < 0.8) return quoted;
  return quoted.replace(/[aé]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

describe("large JSON is read as JSON.parse reads it", () => {
  const rows = Array.from({ length: 8 }, (_, seed) => [seed] as const);
  test.each(rows)("random text %p, whole and with an octet changed", (seed) => {
    const next = random(seed + 1);
    const text = randomText(next, (1 + seed) * 100_000);
    expect(read(text)).toEqual(JSON.parse(text));
    for (let round = 0; round < 10; round++) {
      const bytes = Buffer.from(text);
      bytes[Math.floor(next() * bytes.length)] = '{}[],:"\\0 \n'.charCodeAt(Math.floor(next() * 11));
      const changed = bytes.toString();
      let expected: unknown = "refused";
      try {
        expected = JSON.parse(changed);
      } catch {}
      let got: unknown = "refused";
      try {
        got = read(bytes);
      } catch {}
      // A cut within a character is no UTF-8; decoding for comparison has replaced it.
      if (changed.includes("\ufffd")) expected = "refused";
      expect(got).toEqual(expected);
    }
  });

  test("a property named __proto__ is a property like any other", () => {
    const text = `{"__proto__":{"a":1},"long":"${long}"}`;
    expect(JSON.stringify(read(text))).toBe(text);
    expect(Object.getPrototypeOf(read(text))).toBe(Object.prototype);
  });

  test("the last of two members with one key counts", () => {
    expect(read(`{"a":"${long}","a":1}`)).toEqual({ a: 1 });
  });
});

const print = (value: unknown): string => runAtOnce(fingerprint(value));
const many = (count: number, at: (index: number) => number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${at(index)}`, at(index)]));

describe("the fingerprint of a JSON value", () => {
  test.each([
    ["numbers", 1],
    ["empty objects", {}],
    ["empty lists", []],
    ["texts", "x"],
    ["objects of one field", { a: 1 }],
  ])("the fingerprint of a JSON value of a list of %s is written in short steps", (_, item) => {
    let steps = 0;
    for (const _step of fingerprint(Array(100_000).fill(item))) steps++;
    // A step takes some thousands of values, brackets and commas.
    expect(steps).toBeGreaterThan(40);
  });

  const alike: [string, unknown, unknown][] = [
    ["keys in another order", { a: 1, b: { c: [1, 2], d: 2 } }, { b: { d: 2, c: [1, 2] }, a: 1 }],
    ["numbers spelled otherwise", JSON.parse("[1.0,1e2,-0]"), JSON.parse("[1,100,0]")],
    ["strings spelled otherwise", JSON.parse('"\\u0061\\/"'), "a/"],
    [
      "tens of thousands of keys in another order",
      many(20_011, (at) => at),
      many(20_011, (at) => 20_010 - at),
    ],
    ["a long string", `${long}é`, `${long}\u00e9`],
  ];
  test.each(alike)("the fingerprint of a JSON value is the same for %s", (_name, one, other) =>
    expect(print(one)).toBe(print(other)),
  );

  const different: [string, unknown, unknown][] = [
    ["values in another order", [1, 2], [2, 1]],
    ["a number and its text", 1, "1"],
    ["null and its text", null, "null"],
    ["no value and null", undefined, null],
    ["a list and an object", [], {}],
    ["a list within a list", [[], []], [[[]]]],
    ["members moved to another object", [{ a: 1 }, { b: 2 }], [{ a: 1, b: 2 }, {}]],
    ["the last character of a long string", `${long}a`, `${long}b`],
    ["halves of different surrogate pairs", "\ud800", "\ud801"],
    ["a text with the marks of a list in it", ["a,b"], ["a", "b"]],
  ];
  test.each(different)("differs for %s", (_name, one, other) => expect(print(one)).not.toBe(print(other)));
});

describe("works in steps", () => {
  test("works in steps have one step in a turn of the event loop, and take turns", async () => {
    const run = createStepRunner();
    const log: string[] = [];
    let turns = 0;
    let counting = true;
    const count = async () => {
      for (; counting; turns++) await yieldToEventLoop();
    };
    function* work(name: string) {
      for (let step = 1; step <= 3; step++) {
        log.push(`${name}${step} in ${turns > 0 ? "its" : "no"} turn`);
        yield;
      }
      return name;
    }
    const counted = count();
    await yieldToEventLoop();
    expect(await Promise.all([run(work("a")), run(work("b"))])).toEqual(["a", "b"]);
    counting = false;
    await counted;
    expect(log.map((line) => line.slice(0, 2))).toEqual(["a1", "b1", "a2", "b2", "a3", "b3"]);
    expect(turns).toBeGreaterThanOrEqual(8);
  });

  test("works in steps work that fails in a step rejects, and does not block other work", async () => {
    const run = createStepRunner();
    function* failing() {
      yield;
      throw new Error("broken");
    }
    function* fine() {
      yield;
      return 1;
    }
    const [first, second] = await Promise.allSettled([run(failing()), run(fine())]);
    expect([first.status, second.status]).toEqual(["rejected", "fulfilled"]);
  });
});
