import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import { AppError } from "../../src/core/errors.ts";
import { turn } from "../../src/core/turn.ts";
import { parseJson, readBody } from "../../src/http/body.ts";
import { BodyPieces } from "../../src/http/body-pieces.ts";
import { type BodyPlace, BodyRoom, MAX_OCTETS_HELD, MAX_OCTETS_OF_OWNER } from "../../src/http/body-room.ts";
import { BODY_BASE_MS, BODY_LEAST_RATE, startBodyTime } from "../../src/http/body-time.ts";
import { manualClock } from "../support/manual-clock.ts";

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

const read = (request: Request, place: BodyPlace | null = null) =>
  readBody(request, { clock: manualClock(), maxBytes: LIMIT, place });

async function statusOf(promise: Promise<unknown>): Promise<number> {
  return promise.then(
    () => 200,
    (error: unknown) => (error instanceof AppError ? error.status : 0),
  );
}

describe("a body", () => {
  test("of exactly the limit is read", async () => {
    expect((await read(chunked(LIMIT).request)).byteLength).toBe(LIMIT);
    expect((await read(declared(LIMIT, "x".repeat(LIMIT)))).byteLength).toBe(LIMIT);
  });

  test("one byte over the limit is 413", async () => {
    expect(await statusOf(read(chunked(LIMIT + 1).request))).toBe(413);
    expect(await statusOf(read(declared(LIMIT + 1, "x".repeat(LIMIT + 1))))).toBe(413);
  });

  test("declared as too large is refused unread", async () => {
    const request = declared(LIMIT + 1, "short");
    expect(await statusOf(read(request))).toBe(413);
    expect(request.bodyUsed).toBe(false);
  });

  test("without a declared length is read no further than the limit", async () => {
    const { request, taken } = chunked(LIMIT * 100);
    expect(await statusOf(read(request))).toBe(413);
    expect(taken()).toBeLessThanOrEqual(LIMIT / 100 + 2);
  });

  test("that is absent is no bytes", async () => {
    expect((await read(new Request("http://localhost/", { method: "POST" }))).byteLength).toBe(0);
  });
});

describe("the time of a body", () => {
  const rows: [string, number, number][] = [
    ["of no octets is the base", 0, BODY_BASE_MS],
    ["has a second more for as many as the least rate brings in it", BODY_LEAST_RATE, BODY_BASE_MS + 1000],
    ["is 43 minutes for 40 MiB", 40 * 1024 * 1024, BODY_BASE_MS + 2_560_000],
  ];
  test.each(rows)("%s, and is over then, not a millisecond before", async (_name, octets, timeMs) => {
    const clock = manualClock();
    let late = 0;
    const time = startBodyTime(clock, () => late++);
    time.add(octets);
    clock.advance(BODY_BASE_MS);
    for (let turns = 0; turns < 5; turns++) await turn();
    clock.advance(timeMs - BODY_BASE_MS - 1);
    for (let turns = 0; turns < 5; turns++) await turn();
    if (octets > 0) expect(late).toBe(0);
    clock.advance(1);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect([late, clock.pending()]).toEqual([1, 0]);
  });

  test("is not over a millisecond before the base", async () => {
    const clock = manualClock();
    let late = 0;
    startBodyTime(clock, () => late++);
    clock.advance(BODY_BASE_MS - 1);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(late).toBe(0);
  });

  test("that has ended leaves no timer and is never late", async () => {
    const clock = manualClock();
    let late = 0;
    const [first, second] = [startBodyTime(clock, () => late++), startBodyTime(clock, () => late++)];
    first.end();
    clock.advance(BODY_BASE_MS);
    second.end();
    for (let turns = 0; turns < 5; turns++) await turn();
    expect([late, clock.pending()]).toEqual([0, 0]);
  });

  test("goes on where octets that lay in the socket are read as it ends", async () => {
    const clock = manualClock();
    let late = 0;
    const time = startBodyTime(clock, () => late++);
    setImmediate(() => time.add(1000));
    clock.advance(BODY_BASE_MS);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect([late, clock.pending()]).toEqual([0, 1]);
  });
});

describe("the pieces of a body", () => {
  test.each([1, 100, 4095, 4096, 16_384, 20_000])("of %p octets each are joined in order", (size) => {
    const whole = Uint8Array.from({ length: 70_001 }, (_, at) => at % 251);
    const pieces = new BodyPieces();
    for (let at = 0; at < whole.length; at += size) pieces.add(whole.slice(at, at + size));
    expect(pieces.size).toBe(whole.length);
    expect(Buffer.compare(pieces.join(), whole)).toBe(0);
  });

  test("of mixed sizes are joined in order", () => {
    const whole = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
    const pieces = new BodyPieces();
    let at = 0;
    for (let turns = 0; at < whole.length; turns++) {
      const end = at + ([1, 5000, 3, 4000, 16_000][turns % 5] ?? 1);
      pieces.add(whole.slice(at, end));
      at = end;
    }
    expect(Buffer.compare(pieces.join(), whole)).toBe(0);
  });

  test("that bring an octet each take no multiple of it in memory", () => {
    const OCTETS = 400_000;
    const pieces = new BodyPieces();
    Bun.gc(true);
    const before = heapStats().objectCount;
    for (let count = 0; count < OCTETS; count++) pieces.add(new Uint8Array(1));
    Bun.gc(true);
    expect(heapStats().objectCount - before).toBeLessThan(OCTETS / 100);
    expect(pieces.join().length).toBe(OCTETS);
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

  test("that is no UTF-8 is told so", () => {
    const headers = new Headers({ "content-type": JSON_TYPE });
    expect(() => parseJson(Buffer.from('"é"', "latin1"), headers)).toThrow("not UTF-8");
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
    expect(await statusOf(read(chunked(LIMIT / 2).request, held))).toBe(200);
    expect(await statusOf(read(request, room.enter("snd_a")))).toBe(503);
    expect(request.bodyUsed).toBe(false);
    const refused = room.enter("snd_a");
    expect(await statusOf(read(other, refused))).toBe(503);
    expect(taken()).toBeLessThan(LIMIT / 100);
    for (const place of [held, refused]) place.leave();
    expect(await statusOf(read(declared(LIMIT, "x"), room.enter("snd_a")))).toBe(200);
  });
});
