import type { Clock } from "../core/clock.ts";
import type { Bytes } from "../flows/read/bytes.ts";
import { type Answer, isRaw, JSON_TYPE } from "./answer.ts";
import { type BodyPlace, BodyRoom, type RoomLimits } from "./body-room.ts";
import { type BodyTime, startBodyTime } from "./body-time.ts";

/**
 * Octets that are read before the answer begins: all of most messages, and of larger ones what tells that they can be read.
 * Answers of no more are not counted: what a socket has taken of them leaves little.
 */
export const READ_BEFORE = 128 * 1024;
/** Octets handed to the socket at a time. */
const SLICE_OCTETS = 256 * 1024;

/** What large answers hold until their clients have read them. */
export const LARGE_ANSWERS: RoomLimits = {
  all: 256 * 1024 * 1024,
  ofOwner: 128 * 1024 * 1024,
  refusal: "Too many large answers are under way. Try again.",
};

/** Hands bytes out as the body of an answer of the project's. */
export type HandOut = (
  senderId: string,
  bytes: Bytes,
) => Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>>;

/**
 * Hands bytes out as fast as the client reads them. Clients that ask for the largest and read an octet a second would keep
 * each of them in memory: what they hold together is bounded, and each has the time of a body that is sent to us, after which
 * its connection is cut.
 * @returns a function that throws where the bytes cannot be read, and 503 where there is no room for them
 */
export function openDownloads(clock: Clock): HandOut {
  const room = new BodyRoom(LARGE_ANSWERS);
  return async (senderId, bytes) => {
    if (bytes.size <= READ_BEFORE) return readWhole(bytes);
    const place = room.enter(senderId);
    place.take(bytes.held);
    try {
      const iterator = bytes.pieces[Symbol.asyncIterator]();
      return streamOf(clock, slices(await firstOf(iterator), iterator), () => place.leave());
    } catch (error) {
      place.leave();
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
      yield* whole(piece);
    }
  } finally {
    await rest.return?.();
  }
}

/** What of bytes that are all there is sent at a time. */
async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += SLICE_OCTETS) yield bytes.subarray(at, at + SLICE_OCTETS);
}

/** Where one answer lies until its client has read it. */
export interface AnswerPlace {
  /**
   * Makes room for an answer of about so many octets, before what it is made of is read: whoever is refused is not to cost
   * that memory. Throws 503 where there is none.
   */
  expect(octets: number): void;
  /** Makes the answer ready to be sent. Throws 503 where there is no room for it. */
  send(answer: Answer): Answer;
  /** Gives the room back where nothing is sent. */
  leave(): void;
}

/** A place for one answer of the owner's. */
export type EnterAnswer = (owner: string) => AnswerPlace;

/**
 * Turns JSON into what is sent. A record, a list or a template may have tens of megabytes, and a client that asks for a hundred
 * and reads none would keep each in memory: large ones are bounded and timed as downloads are, with a room of their own.
 */
export function openAnswers(clock: Clock): EnterAnswer {
  const room = new BodyRoom(LARGE_ANSWERS);
  return (owner) => {
    const place = room.enter(owner);
    return {
      expect(octets) {
        if (octets > READ_BEFORE) place.take(octets);
      },
      send(answer) {
        // What it takes is known now.
        place.leave();
        return readyToSend(clock, place, answer);
      },
      leave: () => place.leave(),
    };
  };
}

function readyToSend(clock: Clock, place: BodyPlace, answer: Answer): Answer {
  if (answer.body === undefined || isRaw(answer.body)) return answer;
  const text = JSON.stringify(answer.body);
  const headers = { "content-type": JSON_TYPE, ...answer.headers };
  // A character takes three octets at most.
  if (text.length * 3 <= READ_BEFORE) return { ...answer, body: text, headers };
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= READ_BEFORE) return { ...answer, body: bytes, headers };
  place.take(bytes.length);
  return { ...answer, body: streamOf(clock, whole(bytes), () => place.leave()), headers };
}

/** @param left is called once nothing of the bytes is needed any more */
function streamOf(
  clock: Clock,
  source: AsyncGenerator<Uint8Array, void, undefined>,
  left: () => void,
): ReadableStream<Uint8Array> {
  let time: BodyTime | null = null;
  let ended = false;
  const end = (): void => {
    ended = true;
    time?.end();
    left();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // An answer that nobody takes, as that to HEAD, ends so as well.
        time = startBodyTime(clock, () => {
          end();
          // Without an error Bun prints none.
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
