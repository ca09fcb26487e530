import type { Clock } from "../../core/clock.ts";
import { createReplyParser, type Reply, ReplySyntaxError, replyText } from "./reply-parser.ts";

/** Buffers up to this size in all are joined, so that commands and a small message go out in one packet and call. */
const MAX_JOINED_OCTETS = 64 * 1024;
/** A timer that rings later than this, milliseconds, tells of a time in which nobody listened. */
const LATE_MS = 1000;

export interface WireDeps {
  clock: Clock;
  /** PEM of the authorities trusted instead of the built-in ones. */
  ca?: string | undefined;
}

/** Replies to a burst of commands: all of them, or those that came before the trouble. */
export interface Answers {
  replies: Reply[];
  trouble: string | null;
  /** The replies were here before all octets were taken: what follows them cannot be trusted to be in step. */
  early: boolean;
}

interface Waiting {
  replies: Reply[];
  timeouts: readonly number[];
  /** Count of octets after which all that belongs to this exchange is written. */
  end: number;
  resolve: (answers: Answers) => void;
}

/** One end of a connection: what goes out, and who waits for what comes in. */
export interface Line {
  deps: WireDeps;
  blockTimeoutMs: number;
  socket: Bun.Socket | null;
  outgoing: Uint8Array[];
  /** Octets put into `outgoing`, and of them those written, since the beginning. */
  queued: number;
  written: number;
  pumping: boolean;
  waiting: Waiting[];
  parser: ReturnType<typeof createReplyParser>;
  brokenBy: string | null;
  listener: (() => void) | null;
  deadline: number;
  /** Milliseconds that were given until then. */
  limitMs: number;
  timer: { at: number; cancel: () => void } | null;
  /** Set from the TLS upgrade on: the plain socket goes on seeing the ciphertext, which must not be read as replies. */
  upgraded: boolean;
}

/** A line without a socket yet. */
export function createLine(deps: WireDeps, blockTimeoutMs: number): Line {
  return {
    deps,
    blockTimeoutMs,
    socket: null,
    outgoing: [],
    queued: 0,
    written: 0,
    pumping: false,
    waiting: [],
    parser: createReplyParser(),
    brokenBy: null,
    listener: null,
    deadline: Infinity,
    limitMs: 0,
    timer: null,
    upgraded: false,
  };
}

/** Queues octets and waits for their replies; see `Wire.exchange`. */
export function exchange(
  line: Line,
  octets: readonly Uint8Array[],
  timeouts: readonly number[],
): Promise<Answers> {
  if (line.brokenBy !== null) return Promise.resolve({ replies: [], trouble: line.brokenBy, early: false });
  return new Promise((resolve) => {
    for (const buffer of octets) {
      line.outgoing.push(buffer);
      line.queued += buffer.length;
    }
    line.waiting.push({ replies: [], timeouts, end: line.queued, resolve });
    if (line.waiting.length === 1) rearm(line);
    if (line.pumping) return;
    line.pumping = true;
    // In a microtask: what is written behind this in the same turn goes out with it.
    queueMicrotask(() => {
      line.pumping = false;
      pump(line);
    });
  });
}

/** A write takes what the send buffer holds; the rest waits for `drain`. */
export function pump(line: Line): void {
  const stalled = line.outgoing.length > 0;
  while (line.socket !== null && line.outgoing.length > 0) {
    join(line);
    const next = line.outgoing[0] ?? new Uint8Array();
    const written = Math.max(0, line.socket.write(next));
    line.written += written;
    if (written < next.length) {
      line.outgoing[0] = next.subarray(written);
      break;
    }
    line.outgoing.shift();
  }
  if (stalled && line.waiting.length > 0) rearm(line);
}

/** Joins the buffers at the head of the queue up to the limit. */
function join(line: Line): void {
  let octets = 0;
  let count = 0;
  for (const buffer of line.outgoing) {
    if (octets + buffer.length > MAX_JOINED_OCTETS) break;
    octets += buffer.length;
    count++;
  }
  if (count > 1) line.outgoing.unshift(Buffer.concat(line.outgoing.splice(0, count), octets));
}

/** Takes bytes from the peer. */
export function received(line: Line, chunk: Uint8Array): void {
  if (line.brokenBy !== null) return;
  try {
    line.parser.push(chunk, (reply) => take(line, reply));
  } catch (error) {
    if (!(error instanceof ReplySyntaxError)) throw error;
    cut(line, `protocol error: ${error.message}`);
  }
}

function take(line: Line, reply: Reply): void {
  const first = line.waiting[0];
  // A reply to nothing: a farewell (421), or one that would be taken for the answer to our next command.
  if (first === undefined) {
    cut(line, `closed with ${replyText(reply)}`);
    return;
  }
  first.replies.push(reply);
  if (first.replies.length === first.timeouts.length) {
    line.waiting.shift();
    first.resolve({ replies: first.replies, trouble: null, early: line.written < first.end });
  }
  if (line.waiting.length > 0) rearm(line);
}

/** Sets the time until which the next reply, or progress of what we send, must be here. */
function rearm(line: Line): void {
  const first = line.waiting[0];
  const replyMs = first?.timeouts[first.replies.length] ?? line.blockTimeoutMs;
  const limitMs = line.outgoing.length > 0 ? Math.min(line.blockTimeoutMs, replyMs) : replyMs;
  line.limitMs = limitMs;
  line.deadline = line.deps.clock.now() + limitMs;
  // A timer that rings too early looks again, so that a message costs no timer of its own.
  if (line.timer !== null && line.timer.at <= line.deadline) return;
  line.timer?.cancel();
  line.timer = { at: line.deadline, cancel: line.deps.clock.after(limitMs, () => ring(line)) };
}

function ring(line: Line): void {
  const now = line.deps.clock.now();
  const lateMs = now - (line.timer?.at ?? now);
  line.timer = null;
  if (line.waiting.length === 0 || line.brokenBy !== null) return;
  // The process stood still, or the clock was put forward. A timer rings before the socket is read: the peer's answer may lie
  // there, and a mail that it has taken would go out twice.
  if (lateMs > LATE_MS) line.deadline = now + line.limitMs;
  // A clock that was put back does not lengthen the wait: a peer that hangs would hold the connection until then.
  line.deadline = Math.min(line.deadline, now + line.limitMs);
  const leftMs = line.deadline - now;
  if (leftMs <= 0) cut(line, "timeout");
  else line.timer = { at: line.deadline, cancel: line.deps.clock.after(leftMs, () => ring(line)) };
}

/** Ends the connection once; all who wait hear why. */
export function cut(line: Line, reason: string): void {
  if (line.brokenBy !== null) return;
  line.brokenBy = reason;
  line.timer?.cancel();
  line.timer = null;
  line.outgoing = [];
  line.socket?.terminate();
  for (const { replies, resolve } of line.waiting.splice(0))
    resolve({ replies, trouble: reason, early: false });
  line.listener?.();
}
