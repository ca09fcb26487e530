import type { StreamBytes } from "../routing/parts.ts";
import { AppError } from "../../core/errors.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Bytes } from "../../flows/read/bytes.ts";
import { type Answer, isRaw, JSON_TYPE } from "../routing/answer.ts";
import { type BudgetLimits, createBudget, type Reservation } from "../body/budget.ts";
import { type BodyTime, startBodyTime } from "../body/body.ts";

/**
 * Bytes that are read before the answer begins. This covers most messages. For a larger one it shows that the
 * content can be read. Answers up to this size are not counted, because the socket soon has all of them.
 */
export const READ_BEFORE = 128 * 1024;
/** Bytes handed to the socket at a time. */
const SLICE_OCTETS = 256 * 1024;

/** Memory that large answers hold until their clients have read them. */
export const LARGE_ANSWER_LIMITS: BudgetLimits = {
  total: 256 * 1024 * 1024,
  perOwner: 128 * 1024 * 1024,
  refusal: "Too many large answers are in progress. Try again.",
};

/**
 * Sends stored content as fast as its client reads. A client that asks for large content and reads a byte a second would
 * keep it in memory. So downloads share a budget, and each has the time of a request's body before its connection is cut.
 * @returns a function that throws if the content cannot be read, and 503 if the budget has no room for it
 */
export function createDownloads(clock: Clock): StreamBytes {
  const reserve = createBudget(LARGE_ANSWER_LIMITS);
  return async (senderId, bytes) => {
    if (bytes.size <= READ_BEFORE) return readWhole(bytes);
    const reservation = reserve(senderId);
    reservation.take(bytes.held);
    try {
      const iterator = bytes.pieces[Symbol.asyncIterator]();
      return timedStream(clock, slices(await firstOf(iterator), iterator), () => reservation.leave());
    } catch (error) {
      reservation.leave();
      throw error;
    }
  };
}

async function readWhole({ pieces }: Bytes): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(Buffer.concat(await Array.fromAsync(pieces)));
}

async function firstOf(iterator: AsyncIterator<Uint8Array>): Promise<Uint8Array[]> {
  const first: Uint8Array[] = [];
  for (let octets = 0; octets < READ_BEFORE; ) {
    const { value, done } = await iterator.next();
    if (done === true) break;
    first.push(value);
    octets += value.length;
  }
  return first;
}

async function* slices(
  first: Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (;;) {
      const piece = first.shift() ?? (await rest.next()).value;
      if (piece === undefined) return;
      yield* slicesOf(piece);
    }
  } finally {
    await rest.return?.();
  }
}

/** Cuts bytes into the slices that a socket is given. */
export async function* slicesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += SLICE_OCTETS) yield bytes.subarray(at, at + SLICE_OCTETS);
}

/** An answer in JSON until its client has read it. */
export interface PendingAnswer {
  /**
   * Reserves memory for an answer of about that many bytes, before its content is read. Throws 503 if there is no
   * room, so that a refused request costs no memory.
   */
  expect(octets: number): void;
  /** Writes the answer as JSON. Throws 503 if there is no room for it and it may be refused. */
  send(answer: Answer): Answer;
  /** Gives the memory back, for an answer that is not sent. */
  leave(): void;
}

/**
 * Begins an answer to an owner.
 * @param refusable false: the answer confirms what was done, so it is sent even without room, and only has its time
 */
export type BeginAnswer = (owner: string, refusable?: boolean) => PendingAnswer;

/**
 * Writes answers as JSON. A record, a list or a template may have tens of megabytes, and a client may ask for a hundred of
 * them and read none. So large answers have a budget and a time like downloads; the budget is their own.
 */
export function createAnswers(clock: Clock): BeginAnswer {
  const reserve = createBudget(LARGE_ANSWER_LIMITS);
  return (owner, refusable = true) => {
    const reservation = reserve(owner);
    return {
      expect(octets) {
        if (octets > READ_BEFORE) reservation.take(octets);
      },
      send(answer) {
        // The exact size replaces the expected one.
        reservation.leave();
        return serialized(clock, refusable ? reservation : indulgent(reservation), answer);
      },
      leave: () => reservation.leave(),
    };
  };
}

/** Returns a reservation that takes nothing where it would refuse. */
function indulgent(reservation: Reservation): Reservation {
  return {
    take(octets) {
      try {
        reservation.take(octets);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
      }
    },
    leave: () => reservation.leave(),
  };
}

function serialized(clock: Clock, reservation: Reservation, answer: Answer): Answer {
  const { body: given } = answer;
  if (isRaw(given) && given instanceof Uint8Array)
    return counted(clock, reservation, { ...answer, body: given });
  if (given === undefined || (isRaw(given) && typeof given !== "string")) return answer;
  const text = typeof given === "string" ? given : JSON.stringify(given);
  const headers = { "content-type": JSON_TYPE, ...answer.headers };
  // A character takes three bytes at most.
  if (text.length * 3 <= READ_BEFORE) return { ...answer, body: text, headers };
  return counted(clock, reservation, { ...answer, body: new TextEncoder().encode(text), headers });
}

/** Counts a large body until its client has read it. */
function counted(
  clock: Clock,
  reservation: Reservation,
  answer: Answer & { body: Uint8Array<ArrayBuffer> },
): Answer {
  const bytes = answer.body;
  if (bytes.length <= READ_BEFORE) return answer;
  reservation.take(bytes.length);
  return { ...answer, body: timedStream(clock, slicesOf(bytes), () => reservation.leave()) };
}

/**
 * Returns a body that is made as fast as its client reads, and cut if the client is slower than a request's body may be.
 * @param onEnd is called when the bytes are no longer needed
 */
export function timedStream(
  clock: Clock,
  source: AsyncGenerator<Uint8Array, void, undefined>,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  let time: BodyTime | null = null;
  let ended = false;
  const end = (): void => {
    ended = true;
    time?.end();
    onEnd();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // An answer that no client reads, such as one to HEAD, ends here as well.
        time = startBodyTime(clock, () => {
          end();
          // Given no error, Bun prints none.
          controller.error(undefined);
          void source.return();
        });
      },
      async pull(controller) {
        const { value, done } = await source.next().catch((error: unknown) => {
          end();
          throw error;
        });
        if (ended) return;
        if (done === true) {
          end();
          controller.close();
          return;
        }
        time?.add(value.length);
        controller.enqueue(value);
      },
      async cancel() {
        end();
        await source.return();
      },
    },
    { highWaterMark: 0 },
  );
}
