import { AppError } from "../../core/errors.ts";
import type { Clock } from "../../core/time/clock.ts";
import { resumeTogether, yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { BodyPieces } from "./pieces.ts";
import type { Reservation } from "./budget.ts";
import { readJson } from "../json/build.ts";
import { type RunSteps, runAtOnce, STEP_OCTETS, type Steps } from "../json/steps.ts";

/** Returns the 413 of a body over the limit. */
export function tooLarge(maxBytes: number): AppError {
  return new AppError("payload_too_large", `The body is larger than ${maxBytes} bytes.`);
}

function tooSlow(): AppError {
  return new AppError("request_timeout", "The body came too slowly.");
}

/**
 * Bytes from which a declared body is read in pieces, and memory is reserved as they arrive. Otherwise a client could keep
 * others out if it declared a length and sent nothing. A smaller body is read whole, in half the time.
 */
export const PIECEWISE_OCTETS = 64 * 1024;
export interface BodyReading {
  /** Runs the timer of the body. */
  clock: Clock;
  /** Maximum bytes. */
  maxBytes: number;
  /** Counts the memory; null: it is not counted. */
  reservation: Reservation | null;
  /** Copies the pieces of large bodies, one in each tick of the event loop. Bun lets the other clients wait. */
  runSteps: RunSteps;
}

/**
 * Reads a body. If `Content-Length` declares it too large, it is refused unread. A body without a declared length is counted
 * while it is read. It is dropped at the first byte over the limit, so a stream without end cannot fill the memory.
 * @throws AppError 413 over `maxBytes`, 408 if it does not arrive in time, 400 if the client broke off, 503 if there is no
 *   memory to reserve
 */
export async function readBody(request: Request, reading: BodyReading): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  const declared = length === null ? null : Number(length);
  if (declared !== null && declared > reading.maxBytes) throw tooLarge(reading.maxBytes);
  try {
    // Reading `request.body` makes a stream, through which the whole body would then go. Small bodies do not need one.
    if (declared !== null && declared < PIECEWISE_OCTETS) return await readWhole(request, declared, reading);
    const most = declared ?? reading.maxBytes;
    return request.body === null ? new Uint8Array() : await readPieces(request.body, most, reading);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("invalid_request", "The body could not be read to its end.");
  }
}

/** The server holds the client to the length it declared, so such a body needs no counting. */
async function readWhole(
  request: Request,
  declared: number,
  { clock, reservation }: BodyReading,
): Promise<Uint8Array> {
  reservation?.take(declared);
  return inTime(clock, async (time, over) => {
    time.add(declared);
    return new Uint8Array(await Promise.race([request.arrayBuffer(), over]));
  });
}

/** Requests that were read in one tick go on side by side: one after another they take a fifth more of the event loop. */
const parsed = resumeTogether(() => undefined);

/**
 * Refuses a request whose connection is closed or closing, before anything is changed for it. Bun answers 400 itself, or
 * closes, when trailer fields or other bytes follow a body, whatever the handler does. One turn later it has parsed all
 * that came with the body. Trailer fields that come later still end the connection (oven-sh/bun#32887).
 * @throws AppError 400 if the client announces trailer fields, or if the connection is closed
 */
export async function requireConnection({ headers, signal }: Request): Promise<void> {
  if (headers.has("trailer"))
    throw new AppError("invalid_request", "Send no trailer fields after the body. Put them in the header.", {
      param: "Trailer",
    });
  await parsed();
  if (signal.aborted)
    throw new AppError("invalid_request", "The connection closed before the request was complete.");
}

async function readPieces(
  body: ReadableStream<Uint8Array>,
  most: number,
  { clock, maxBytes, reservation, runSteps }: BodyReading,
): Promise<Uint8Array> {
  const pieces = new BodyPieces(most);
  const reader = body.getReader();
  try {
    return await inTime(clock, async (time, over) => {
      for (;;) {
        const { done, value } = await Promise.race([reader.read(), over]);
        if (done) return pieces.join();
        if (pieces.size + value.length > Math.min(most, maxBytes)) throw tooLarge(maxBytes);
        reservation?.take(value.length);
        time.add(value.length);
        await inSteps(pieces.size, adding(pieces, value), runSteps);
      }
    });
  } catch (error) {
    // Not awaited: the answer need not wait for the client to stop.
    reader.cancel().catch(() => undefined);
    throw error;
  }
}

function* adding(pieces: BodyPieces, value: Uint8Array): Steps<void> {
  pieces.add(value);
  yield;
}

/** Reads a body while its timer runs. @param read gets a promise that rejects with 408 when the time is over */
async function inTime<Value>(
  clock: Clock,
  read: (time: BodyTime, over: Promise<never>) => Promise<Value>,
): Promise<Value> {
  const { time, over } = timeOf(clock);
  try {
    return await read(time, over);
  } finally {
    time.end();
  }
}

/** Starts the timer of a body, with a promise that rejects with 408 when the time is over. */
export function timeOf(clock: Clock): { time: BodyTime; over: Promise<never> } {
  const { promise: over, reject } = Promise.withResolvers<never>();
  // It may reject while no code waits for it.
  over.catch(() => undefined);
  return { time: startBodyTime(clock, () => reject(tooSlow())), over };
}

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;.*)?$/i;

/**
 * Checks that the headers declare JSON that is not compressed.
 * @throws AppError 400 for another content type, and for bytes that are encoded
 */
function checkContentType(headers: Headers): void {
  const contentType = headers.get("content-type");
  if (contentType === null || !JSON_TYPE.test(contentType))
    throw new AppError("invalid_request", "A request with a body needs Content-Type: application/json.");
  checkEncoding(headers);
}

/** Checks that a body is not compressed. @throws AppError 400 for bytes that are encoded */
export function checkEncoding(headers: Headers): void {
  const encoding = headers.get("content-encoding") ?? "identity";
  // A few compressed bytes could become any number of them.
  if (!/^(?:identity)?$/i.test(encoding))
    throw new AppError("invalid_request", "Send the body as it is, without a Content-Encoding.", {
      param: "Content-Encoding",
    });
}

/** Byte order mark of UTF-8. Some clients put it first, and a reader may ignore it (RFC 8259 §8.1). */
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

/**
 * Parses the JSON value of a body; undefined for an empty one. A body of more than one step is parsed in steps.
 * @throws AppError 400 for another content type, for compressed bytes, and for text that is not UTF-8 or not JSON;
 *   422 over a limit of `scanJson`
 */
export async function parseJson(
  bytes: Uint8Array,
  headers: Headers,
  runSteps: RunSteps,
  byteLists = false,
): Promise<unknown> {
  if (bytes.byteLength === 0) return undefined;
  checkContentType(headers);
  const octets = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const marked = BYTE_ORDER_MARK.equals(octets.subarray(0, BYTE_ORDER_MARK.length));
  const text = marked ? octets.subarray(BYTE_ORDER_MARK.length) : octets;
  return inSteps(bytes.byteLength, readJson(text, byteLists), runSteps);
}

/** Does work on a body of that many bytes: in steps if it is larger than one, else at once. */
export async function inSteps<Result>(
  octets: number,
  work: Steps<Result>,
  runSteps: RunSteps,
): Promise<Result> {
  return octets <= STEP_OCTETS ? runAtOnce(work) : runSteps(work);
}

/** Milliseconds that every body has. Lost packets, or a client that produces the body while it sends, may take as long. */
export const BODY_BASE_MS = 30_000;
/**
 * Bytes a second that a body must bring on average after that: an eighth of a megabit, at which 40 MiB take 43 minutes. A
 * client that wants to fill the memory must keep sending all bodies at this rate (slowloris). A lower rate would not help
 * slow clients, because Bun closes a connection that is idle for `IDLE_TIMEOUT_SECONDS`.
 */
export const MIN_BODY_RATE = 16 * 1024;

/** Returns the milliseconds that a body may take if that many bytes of it have arrived or were declared. */
export function bodyTimeMs(octets: number): number {
  return BODY_BASE_MS + (octets / MIN_BODY_RATE) * 1000;
}

export interface BodyTime {
  /** Adds the time for more bytes. */
  add(octets: number): void;
  end(): void;
}

/**
 * Starts the timer of a body. If its time is over before `end`, calls `late` once. Timers count the time, so a clock that is
 * put forward does not shorten it. After the process was frozen, bytes that wait in the socket are read first.
 */
export function startBodyTime(clock: Clock, late: () => void): BodyTime {
  let octets = 0;
  let passedMs = 0;
  let ended = false;
  let cancel = (): void => undefined;
  const wait = (): void => {
    const leftMs = Math.ceil(bodyTimeMs(octets) - passedMs);
    cancel = clock.after(leftMs, () => void look(leftMs));
  };
  const look = async (waitedMs: number): Promise<void> => {
    passedMs += waitedMs;
    if (bodyTimeMs(octets) <= passedMs) await untilRead();
    if (ended) return;
    if (bodyTimeMs(octets) > passedMs) return wait();
    late();
  };
  wait();
  return {
    add(more) {
      octets += more;
    },
    end() {
      ended = true;
      cancel();
    },
  };
}

/** Lets the event loop read the sockets, which come after timers. */
async function untilRead(): Promise<void> {
  await yieldToEventLoop();
  await yieldToEventLoop();
}
