import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/core/errors.ts";
import { parseJson, readBody } from "../../src/http/body.ts";

const LIMIT = 1000;

/** A body without a declared length, in chunks of 100 bytes; counts the chunks taken. */
function chunked(bytes: number): { request: Request; taken: () => number } {
  let taken = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (taken * 100 >= bytes) return controller.close();
        taken++;
        controller.enqueue(new Uint8Array(Math.min(100, bytes - (taken - 1) * 100)));
      },
    },
    { highWaterMark: 0 },
  );
  return { request: new Request("http://localhost/", { method: "POST", body }), taken: () => taken };
}

function declared(length: number, body: string): Request {
  return new Request("http://localhost/", {
    method: "POST",
    body,
    headers: { "content-length": String(length) },
  });
}

async function statusOf(promise: Promise<unknown>): Promise<number> {
  return promise.then(
    () => 200,
    (error: unknown) => (error instanceof AppError ? error.status : 0),
  );
}

describe("a body", () => {
  test("of exactly the limit is read", async () => {
    expect((await readBody(chunked(LIMIT).request, LIMIT)).byteLength).toBe(LIMIT);
    expect((await readBody(declared(LIMIT, "x".repeat(LIMIT)), LIMIT)).byteLength).toBe(LIMIT);
  });

  test("one byte over the limit is 413", async () => {
    expect(await statusOf(readBody(chunked(LIMIT + 1).request, LIMIT))).toBe(413);
    expect(await statusOf(readBody(declared(LIMIT + 1, "x".repeat(LIMIT + 1)), LIMIT))).toBe(413);
  });

  test("declared as too large is refused unread", async () => {
    const request = declared(LIMIT + 1, "short");
    expect(await statusOf(readBody(request, LIMIT))).toBe(413);
    expect(request.bodyUsed).toBe(false);
  });

  test("without a declared length is read no further than the limit", async () => {
    const { request, taken } = chunked(LIMIT * 100);
    expect(await statusOf(readBody(request, LIMIT))).toBe(413);
    expect(taken()).toBeLessThanOrEqual(LIMIT / 100 + 2);
  });

  test("that is absent is no bytes", async () => {
    expect((await readBody(new Request("http://localhost/", { method: "POST" }), LIMIT)).byteLength).toBe(0);
  });
});

describe("JSON", () => {
  const JSON_TYPE = "application/json";
  const rows: [string, string | Uint8Array, string | null, unknown][] = [
    ["an object", '{"a":1}', JSON_TYPE, { a: 1 }],
    ["with a charset", "[]", "application/json; charset=utf-8", []],
    ["of a +json type", "1", "application/vnd.x+json", 1],
    ["of another case", "1", "Application/JSON", 1],
    ["nothing, of any type", "", "text/plain", undefined],
    ["nothing, of no type", "", null, undefined],
    ["of no type", "{}", null, 400],
    ["as text", "{}", "text/plain", 400],
    ["as a form", "a=1", "application/x-www-form-urlencoded", 400],
    ["cut off", '{"a":', JSON_TYPE, 400],
    ["with a comma too many", '{"a":1,}', JSON_TYPE, 400],
    ["in bytes that are no UTF-8", new Uint8Array([0x22, 0xff, 0x22]), JSON_TYPE, 400],
    ["nested too deep for the parser", "[".repeat(5_000_000), JSON_TYPE, 400],
  ];
  test.each(rows)("%s", async (_name, body, type, expected) => {
    const parse = async () => parseJson(Buffer.from(body), type);
    if (expected === 400) expect(await statusOf(parse())).toBe(400);
    else expect(await parse()).toEqual(expected);
  });
});
