import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/core/errors.ts";
import { parseJson, readBody } from "../../src/http/body.ts";
import { BodyRoom, MAX_OCTETS_HELD, MAX_OCTETS_OF_OWNER } from "../../src/http/body-room.ts";

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
    const headers = new Headers(type === null ? {} : { "content-type": type });
    const parse = async () => parseJson(Buffer.from(body), headers);
    if (expected === 400) expect(await statusOf(parse())).toBe(400);
    else expect(await parse()).toEqual(expected);
  });

  test.each(["identity", "Identity", ""])("with Content-Encoding %p is read", (encoding) => {
    const headers = new Headers({ "content-type": JSON_TYPE, "content-encoding": encoding });
    expect(parseJson(Buffer.from("{}"), headers)).toEqual({});
  });

  test("that is compressed is refused as such", () => {
    const headers = new Headers({ "content-type": JSON_TYPE, "content-encoding": "gzip" });
    expect(() => parseJson(Bun.gzipSync(Buffer.from("{}")), headers)).toThrow("without a Content-Encoding");
  });
});

describe("the bodies of all requests", () => {
  const refusal = (take: () => void): number => {
    try {
      take();
      return 200;
    } catch (error) {
      return error instanceof AppError ? error.status : 0;
    }
  };

  test("of one owner are held up to its limit, and one octet over it is 503 until another is gone", () => {
    const room = new BodyRoom();
    const [first, second] = [room.enter("snd_a"), room.enter("snd_a")];
    first.take(MAX_OCTETS_OF_OWNER - 10);
    second.take(10);
    expect(refusal(() => second.take(1))).toBe(503);
    expect(refusal(() => room.enter("snd_b").take(1))).toBe(200);
    first.leave();
    first.leave();
    expect(refusal(() => second.take(MAX_OCTETS_OF_OWNER - 10))).toBe(200);
    expect(refusal(() => room.enter("snd_a").take(1))).toBe(503);
  });

  test("of all owners are held up to the limit, and one octet over it is 503", () => {
    const room = new BodyRoom();
    for (let at = 0; at < MAX_OCTETS_HELD / MAX_OCTETS_OF_OWNER; at++)
      room.enter(`snd_${at}`).take(MAX_OCTETS_OF_OWNER);
    expect(refusal(() => room.enter("snd_other").take(1))).toBe(503);
  });

  test("however large, one alone fits, whole and in pieces", () => {
    const place = new BodyRoom().enter("snd_a");
    place.take(MAX_OCTETS_HELD + 1);
    expect(refusal(() => place.take(1))).toBe(200);
  });

  test("are counted as declared before any of it is read, or as they come", async () => {
    const room = new BodyRoom();
    room.enter("snd_a").take(MAX_OCTETS_OF_OWNER - LIMIT);
    const request = declared(LIMIT, "x");
    const { request: other, taken } = chunked(LIMIT);
    const held = room.enter("snd_a");
    expect(await statusOf(readBody(chunked(LIMIT / 2).request, LIMIT, held))).toBe(200);
    expect(await statusOf(readBody(request, LIMIT, room.enter("snd_a")))).toBe(503);
    expect(request.bodyUsed).toBe(false);
    const refused = room.enter("snd_a");
    expect(await statusOf(readBody(other, LIMIT, refused))).toBe(503);
    expect(taken()).toBeLessThan(LIMIT / 100);
    for (const place of [held, refused]) place.leave();
    expect(await statusOf(readBody(declared(LIMIT, "x"), LIMIT, room.enter("snd_a")))).toBe(200);
  });
});
