import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import { AppError } from "../../../../src/core/errors.ts";
import { ERROR_STATUS } from "../../../../src/http/routing/errors.ts";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { parseJson, readBody } from "../../../../src/http/body/body.ts";
import { BodyPieces } from "../../../../src/http/body/pieces.ts";
import {
  createBudget,
  REQUEST_BODY_LIMITS,
  type Reservation,
  MAX_BODY_OCTETS,
  MAX_BODY_OCTETS_PER_OWNER,
} from "../../../../src/http/body/budget.ts";
import { BODY_BASE_MS, MIN_BODY_RATE, startBodyTime } from "../../../../src/http/body/body.ts";
import { createStepRunner } from "../../../../src/http/json/steps.ts";
import { manualClock } from "../../../support/manual-clock.ts";

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

const read = (request: Request, reservation: Reservation | null = null) =>
  readBody(request, { clock: manualClock(), maxBytes: LIMIT, reservation, runSteps: createStepRunner() });

async function statusOf(promise: Promise<unknown>): Promise<number> {
  return promise.then(
    () => 200,
    (error: unknown) => (error instanceof AppError ? ERROR_STATUS[error.type] : 0),
  );
}

describe("a body", () => {
  test("a body of exactly the limit is read", async () => {
    expect((await read(chunked(LIMIT).request)).byteLength).toBe(LIMIT);
    expect((await read(declared(LIMIT, "x".repeat(LIMIT)))).byteLength).toBe(LIMIT);
  });

  test("one byte over the limit is 413", async () => {
    expect(await statusOf(read(chunked(LIMIT + 1).request))).toBe(413);
    expect(await statusOf(read(declared(LIMIT + 1, "x".repeat(LIMIT + 1))))).toBe(413);
  });

  test("declared as too large is refused without reading", async () => {
    const request = declared(LIMIT + 1, "short");
    expect(await statusOf(read(request))).toBe(413);
    expect(request.bodyUsed).toBe(false);
  });

  test("a body without a declared length is read no further than the limit", async () => {
    const { request, taken } = chunked(LIMIT * 100);
    expect(await statusOf(read(request))).toBe(413);
    expect(taken()).toBeLessThanOrEqual(LIMIT / 100 + 2);
  });

  test("a body that is large is copied in turns with others, so that requests in between wait for one piece only", async () => {
    const [count, piece] = [8, 1024 * 1024];
    const large = (): Request => {
      let left = count;
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (left-- === 0) controller.close();
            else controller.enqueue(new Uint8Array(piece).fill(left));
          },
        },
        { highWaterMark: 0 },
      );
      return new Request("http://localhost/", { method: "POST", body });
    };
    const reading = {
      clock: manualClock(),
      maxBytes: count * piece,
      reservation: null,
      runSteps: createStepRunner(),
    };
    let turns = 0;
    let read = false;
    const counting = (async () => {
      for (; !read; turns++) await yieldToEventLoop();
    })();
    const bodies = await Promise.all([readBody(large(), reading), readBody(large(), reading)]);
    read = true;
    await counting;
    for (const body of bodies)
      expect(Array.from({ length: count }, (_, at) => body[(at + 1) * piece - 1])).toEqual(
        Array.from({ length: count }, (_, at) => count - 1 - at),
      );
    // The first piece of each is small enough to be taken at once.
    expect(turns).toBeGreaterThanOrEqual(2 * (count - 1));
  });

  test("a body that is absent has no bytes", async () => {
    expect((await read(new Request("http://localhost/", { method: "POST" }))).byteLength).toBe(0);
  });
});

describe("the time of a body", () => {
  const rows: [string, number, number][] = [
    ["of no octets is the base", 0, BODY_BASE_MS],
    ["has a second more for as many as the least rate brings in it", MIN_BODY_RATE, BODY_BASE_MS + 1000],
    ["is 43 minutes for 40 MiB", 40 * 1024 * 1024, BODY_BASE_MS + 2_560_000],
  ];
  test.each(rows)("%s, and ends exactly then", async (_name, octets, timeMs) => {
    const clock = manualClock();
    let late = 0;
    const time = startBodyTime(clock, () => late++);
    time.add(octets);
    clock.advance(BODY_BASE_MS);
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    clock.advance(timeMs - BODY_BASE_MS - 1);
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    if (octets > 0) expect(late).toBe(0);
    clock.advance(1);
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    expect([late, clock.pending()]).toEqual([1, 0]);
  });

  test("the time of a body does not end a millisecond before the base time", async () => {
    const clock = manualClock();
    let late = 0;
    startBodyTime(clock, () => late++);
    clock.advance(BODY_BASE_MS - 1);
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    expect(late).toBe(0);
  });

  test("the time of a body that has ended leaves no timer and is never late", async () => {
    const clock = manualClock();
    let late = 0;
    const [first, second] = [startBodyTime(clock, () => late++), startBodyTime(clock, () => late++)];
    first.end();
    clock.advance(BODY_BASE_MS);
    second.end();
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    expect([late, clock.pending()]).toEqual([0, 0]);
  });

  test("continues if octets that were waiting in the socket are read as it ends", async () => {
    const clock = manualClock();
    let late = 0;
    const time = startBodyTime(clock, () => late++);
    setImmediate(() => time.add(1000));
    clock.advance(BODY_BASE_MS);
    for (let turns = 0; turns < 5; turns++) await yieldToEventLoop();
    expect([late, clock.pending()]).toEqual([0, 1]);
  });
});

describe("the pieces of a body", () => {
  test.each([1, 100, 4095, 4096, 16_384, 20_000])("of %p octets each are joined in order", (size) => {
    const whole = Uint8Array.from({ length: 70_001 }, (_, at) => at % 251);
    const pieces = new BodyPieces(4_000_000);
    for (let at = 0; at < whole.length; at += size) pieces.add(whole.slice(at, at + size));
    expect(pieces.size).toBe(whole.length);
    expect(Buffer.compare(pieces.join(), whole)).toBe(0);
  });

  test("the pieces of a body of several MiB are joined in order", () => {
    const whole = Uint8Array.from({ length: 3_000_001 }, (_, at) => at % 251);
    const pieces = new BodyPieces(whole.length);
    for (let at = 0, turns = 0; at < whole.length; turns++) {
      const end = at + ([1, 200_000, 3, 4000, 16_000][turns % 5] ?? 1);
      pieces.add(whole.slice(at, end));
      at = Math.min(end, whole.length);
    }
    expect(Buffer.compare(pieces.join(), whole)).toBe(0);
  });

  test("the pieces of a body give their memory back as soon as they are copied, if it is theirs alone", () => {
    const pieces = new BodyPieces(4_000_000);
    pieces.add(new Uint8Array(2_000_000).fill(1));
    const [own, shared] = [new Uint8Array(1000).fill(2), new Uint8Array(2000).subarray(1000).fill(3)];
    for (const piece of [own, shared]) pieces.add(piece);
    expect([own.byteLength, shared.byteLength]).toEqual([0, 1000]);
    expect([...pieces.join().subarray(2_000_000)]).toEqual([...Array(1000).fill(2), ...Array(1000).fill(3)]);
  });

  test("the pieces of a body of mixed sizes are joined in order", () => {
    const whole = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
    const pieces = new BodyPieces(4_000_000);
    let at = 0;
    for (let turns = 0; at < whole.length; turns++) {
      const end = at + ([1, 5000, 3, 4000, 16_000][turns % 5] ?? 1);
      pieces.add(whole.slice(at, end));
      at = end;
    }
    expect(Buffer.compare(pieces.join(), whole)).toBe(0);
  });

  test("the pieces of a body of one octet each use no multiple of their size in memory", () => {
    const OCTETS = 400_000;
    const pieces = new BodyPieces(4_000_000);
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
    ["empty, of any type", "", "text/plain", undefined],
    ["empty, without a type", "", null, undefined],
    ["of no type", "{}", null, 400],
    ["as text", "{}", "text/plain", 400],
    ["as a form", "a=1", "application/x-www-form-urlencoded", 400],
    ["cut off", '{"a":', JSON_TYPE, 400],
    ["with a comma too many", '{"a":1,}', JSON_TYPE, 400],
    ["in bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), JSON_TYPE, 400],
    ["nested too deep for the parser", "[".repeat(5_000_000), JSON_TYPE, 422],
  ];
  test.each(rows)("%s", async (_name, body, type, expected) => {
    const headers = new Headers(type === null ? {} : { "content-type": type });
    const parse = async () => parseJson(Buffer.from(body), headers, createStepRunner());
    if (expected === 400 || expected === 422) expect(await statusOf(parse())).toBe(expected);
    else expect(await parse()).toEqual(expected);
  });

  test.each(["identity", "Identity", ""])("with Content-Encoding %p is read", async (encoding) => {
    const headers = new Headers({ "content-type": JSON_TYPE, "content-encoding": encoding });
    expect(await parseJson(Buffer.from("{}"), headers, createStepRunner())).toEqual({});
  });

  test("JSON that is not UTF-8 is refused with that reason", async () => {
    const headers = new Headers({ "content-type": JSON_TYPE });
    const parsing = parseJson(Buffer.from('"é"', "latin1"), headers, createStepRunner());
    await expect(parsing).rejects.toThrow("not UTF-8");
  });

  test("compressed JSON is refused with that reason", async () => {
    const headers = new Headers({ "content-type": JSON_TYPE, "content-encoding": "gzip" });
    const parsing = parseJson(Bun.gzipSync(Buffer.from("{}")), headers, createStepRunner());
    await expect(parsing).rejects.toThrow("without a Content-Encoding");
  });
});

describe("the bodies of all requests", () => {
  const refusal = (take: () => void): number => {
    try {
      take();
      return 200;
    } catch (error) {
      return error instanceof AppError ? ERROR_STATUS[error.type] : 0;
    }
  };

  test("one owner's bodies are held up to its limit, and one octet more is 503 until another ends", () => {
    const reserve = createBudget(REQUEST_BODY_LIMITS);
    const [first, second] = [reserve("snd_a"), reserve("snd_a")];
    first.take(MAX_BODY_OCTETS_PER_OWNER - 10);
    second.take(10);
    expect(refusal(() => second.take(1))).toBe(503);
    expect(refusal(() => reserve("snd_b").take(1))).toBe(200);
    first.leave();
    first.leave();
    expect(refusal(() => second.take(MAX_BODY_OCTETS_PER_OWNER - 10))).toBe(200);
    expect(refusal(() => reserve("snd_a").take(1))).toBe(503);
  });

  test("the bodies of all owners are held up to the limit, and one octet more is 503", () => {
    const reserve = createBudget(REQUEST_BODY_LIMITS);
    for (let at = 0; at < MAX_BODY_OCTETS / MAX_BODY_OCTETS_PER_OWNER; at++)
      reserve(`snd_${at}`).take(MAX_BODY_OCTETS_PER_OWNER);
    expect(refusal(() => reserve("snd_other").take(1))).toBe(503);
  });

  test("a single body always fits, however large, whole or in pieces", () => {
    const reservation = createBudget(REQUEST_BODY_LIMITS)("snd_a");
    reservation.take(MAX_BODY_OCTETS + 1);
    expect(refusal(() => reservation.take(1))).toBe(200);
  });

  test("the bodies of all requests are counted by their declared size before reading, or as they arrive", async () => {
    const reserve = createBudget(REQUEST_BODY_LIMITS);
    reserve("snd_a").take(MAX_BODY_OCTETS_PER_OWNER - LIMIT);
    const request = declared(LIMIT, "x");
    const { request: other, taken } = chunked(LIMIT);
    const held = reserve("snd_a");
    expect(await statusOf(read(chunked(LIMIT / 2).request, held))).toBe(200);
    expect(await statusOf(read(request, reserve("snd_a")))).toBe(503);
    expect(request.bodyUsed).toBe(false);
    const refused = reserve("snd_a");
    expect(await statusOf(read(other, refused))).toBe(503);
    expect(taken()).toBeLessThan(LIMIT / 100);
    for (const one of [held, refused]) one.leave();
    expect(await statusOf(read(declared(LIMIT, "x"), reserve("snd_a")))).toBe(200);
  });
});
