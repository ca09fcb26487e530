import { isAscii } from "node:buffer";
import { AppError } from "../core/errors.ts";
import type { Clock } from "../core/clock.ts";
import { BodyPieces } from "./body-pieces.ts";
import type { BodyPlace } from "./body-room.ts";
import { type BodyTime, startBodyTime } from "./body-time.ts";

function tooLarge(maxBytes: number): AppError {
  return new AppError("payload_too_large", `The body is larger than ${maxBytes} bytes.`);
}

function tooSlow(): AppError {
  return new AppError("request_timeout", "The body came too slowly.");
}

/**
 * Octets from which on a declared body is taken in as it comes, and room for it as well: to declare it alone would keep
 * others out at no cost. Smaller ones are read whole, in half the time, and are too many to be had for nothing.
 */
export const PIECEWISE_OCTETS = 64 * 1024;
/** How a body is read. */
export interface BodyReading {
  /** Gives it its time. */
  clock: Clock;
  /** Octets at most. */
  maxBytes: number;
  /** What it lies in; null: it is not counted. */
  place: BodyPlace | null;
}

/**
 * The body's bytes. What `Content-Length` declares as too large is refused unread; a body without a declared length
 * is counted while it is read and dropped at the first byte over: a stream without end must not fill the memory.
 * @throws AppError 413 over `maxBytes`, 408 where it does not come in its time, 400 where the client broke off, 503 where
 *   the place is too small
 */
export async function readBody(request: Request, reading: BodyReading): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  const declared = length === null ? null : Number(length);
  if (declared !== null && declared > reading.maxBytes) throw tooLarge(reading.maxBytes);
  try {
    // `request.body` is not even looked at where a body is read whole: that alone makes a stream, through which all of it would go.
    if (declared !== null && declared < PIECEWISE_OCTETS) return await readWhole(request, declared, reading);
    return request.body === null ? new Uint8Array() : await readPieces(request.body, reading);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("invalid_request", "The body could not be read to its end.");
  }
}

/** The server holds the client to the length it declared, so such a body needs no counting. */
async function readWhole(
  request: Request,
  declared: number,
  { clock, place }: BodyReading,
): Promise<Uint8Array> {
  place?.take(declared);
  return inTime(clock, async (time, over) => {
    time.add(declared);
    return new Uint8Array(await Promise.race([request.arrayBuffer(), over]));
  });
}

async function readPieces(
  body: ReadableStream<Uint8Array>,
  { clock, maxBytes, place }: BodyReading,
): Promise<Uint8Array> {
  const pieces = new BodyPieces();
  const reader = body.getReader();
  try {
    return await inTime(clock, async (time, over) => {
      for (;;) {
        const { done, value } = await Promise.race([reader.read(), over]);
        if (done) return pieces.join();
        if (pieces.size + value.length > maxBytes) throw tooLarge(maxBytes);
        place?.take(value.length);
        time.add(value.length);
        pieces.add(value);
      }
    });
  } catch (error) {
    // Not awaited: the answer need not wait for the client to stop.
    reader.cancel().catch(() => undefined);
    throw error;
  }
}

/** Reads a body with its time running. @param read is given what rejects with 408 once that is over */
async function inTime<Value>(
  clock: Clock,
  read: (time: BodyTime, over: Promise<never>) => Promise<Value>,
): Promise<Value> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  // It may be over while nobody waits.
  over.catch(() => undefined);
  const time = startBodyTime(clock, () => reject(tooSlow()));
  try {
    return await read(time, over);
  } finally {
    time.end();
  }
}

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;.*)?$/i;

/**
 * The JSON value of a body; undefined for an empty one.
 * @throws AppError 400 for another content type, for bytes that are encoded or no UTF-8, and for text that is no JSON
 */
export function parseJson(bytes: Uint8Array, headers: Headers): unknown {
  if (bytes.byteLength === 0) return undefined;
  const contentType = headers.get("content-type");
  const encoding = headers.get("content-encoding") ?? "identity";
  if (contentType === null || !JSON_TYPE.test(contentType))
    throw new AppError("invalid_request", "A request with a body needs Content-Type: application/json.");
  // A few compressed octets could become any number of them.
  if (!/^(?:identity)?$/i.test(encoding))
    throw new AppError("invalid_request", "Send the body as it is, without a Content-Encoding.", {
      param: "Content-Encoding",
    });
  const text = textOf(bytes);
  try {
    return JSON.parse(text);
  } catch {
    // RangeError included: a text nested too deep for the parser is as good as none.
    throw new AppError("invalid_request", "The body is not valid JSON.");
  }
}

/**
 * The text in bytes of UTF-8 (RFC 8259 §8.1). Most of a large body is base64, and ASCII is read in half the time.
 * @throws AppError 400 for others, such as the Latin-1 that PowerShell's `Invoke-RestMethod` makes of a text
 */
function textOf(bytes: Uint8Array): string {
  if (!isAscii(bytes)) return utf8TextOf(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

function utf8TextOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new AppError("invalid_request", "The body is not UTF-8.");
  }
}
