import { resumeTogether } from "../../core/concurrency/event-loop.ts";
import type { Clock } from "../../core/time/clock.ts";
import { createReplyParser, type Reply, ReplySyntaxError, replyText } from "./reply-parser.ts";

/** Buffers of up to this size in total are joined, so that commands and a small message are sent in one packet. */
const MAX_JOINED_OCTETS = 64 * 1024;
/** If a timer fires this many milliseconds late, the process did not read the socket in that time. */
const LATE_MS = 1000;

export interface TransportDeps {
  clock: Clock;
  /** PEM of the trusted authorities. If undefined, the built-in ones. */
  ca?: string | undefined;
}

/** Replies to a burst of commands: all of them, or those before the trouble. */
export interface ExchangeResult {
  replies: Reply[];
  trouble: string | null;
  /** True if the replies came before all octets were sent, so that later replies may be out of step. */
  early: boolean;
}

interface Waiting {
  replies: Reply[];
  timeouts: readonly number[];
  /** Value of `written` at which this exchange is sent. */
  end: number;
  resolve: (answers: ExchangeResult) => void;
}

/** State of one connection: octets to send, and exchanges that wait for replies. */
export interface TransportState {
  deps: TransportDeps;
  blockTimeoutMs: number;
  socket: Bun.Socket | null;
  outgoing: Uint8Array[];
  /** Octets ever put into `outgoing`, and octets ever written. */
  queued: number;
  written: number;
  flushScheduled: boolean;
  waiting: Waiting[];
  parser: ReturnType<typeof createReplyParser>;
  closeReason: string | null;
  onClosed: (() => void) | null;
  deadline: number;
  /** Length of the current limit, milliseconds. */
  limitMs: number;
  timer: { at: number; cancel: () => void } | null;
  /**
   * Set from the TLS upgrade on. The plain socket still reports the ciphertext, which must not be parsed as replies.
   */
  upgraded: boolean;
}

/** Creates the state of a connection without a socket. */
export function createTransportState(deps: TransportDeps, blockTimeoutMs: number): TransportState {
  return {
    deps,
    blockTimeoutMs,
    socket: null,
    outgoing: [],
    queued: 0,
    written: 0,
    flushScheduled: false,
    waiting: [],
    parser: createReplyParser(),
    closeReason: null,
    onClosed: null,
    deadline: Infinity,
    limitMs: 0,
    timer: null,
    upgraded: false,
  };
}

/** Resumes exchanges side by side whose replies were read in one turn: the code of each step is then in the processor's caches. */
const resume = resumeTogether(() => undefined);

/** Queues octets and waits for their replies; see `Transport.exchange`. */
export async function exchange(
  state: TransportState,
  octets: readonly Uint8Array[],
  timeouts: readonly number[],
): Promise<ExchangeResult> {
  const result = await replied(state, octets, timeouts);
  await resume();
  return result;
}

function replied(
  state: TransportState,
  octets: readonly Uint8Array[],
  timeouts: readonly number[],
): Promise<ExchangeResult> {
  if (state.closeReason !== null)
    return Promise.resolve({ replies: [], trouble: state.closeReason, early: false });
  return new Promise((resolve) => {
    for (const buffer of octets) {
      state.outgoing.push(buffer);
      state.queued += buffer.length;
    }
    state.waiting.push({ replies: [], timeouts, end: state.queued, resolve });
    if (state.waiting.length === 1) restartTimer(state);
    if (state.flushScheduled) return;
    state.flushScheduled = true;
    // In a microtask, so that octets queued in the same turn are sent together.
    queueMicrotask(() => {
      state.flushScheduled = false;
      flush(state);
    });
  });
}

/** Writes what the send buffer accepts. `drain` continues with the rest. */
export function flush(state: TransportState): void {
  const stalled = state.outgoing.length > 0;
  while (state.socket !== null && state.outgoing.length > 0) {
    joinSmallBuffers(state);
    const next = state.outgoing[0] ?? new Uint8Array();
    const written = Math.max(0, state.socket.write(next));
    state.written += written;
    if (written < next.length) {
      state.outgoing[0] = next.subarray(written);
      break;
    }
    state.outgoing.shift();
  }
  if (stalled && state.waiting.length > 0) restartTimer(state);
}

/** Joins small buffers at the head of the queue. */
function joinSmallBuffers(state: TransportState): void {
  let octets = 0;
  let count = 0;
  for (const buffer of state.outgoing) {
    if (octets + buffer.length > MAX_JOINED_OCTETS) break;
    octets += buffer.length;
    count++;
  }
  if (count > 1) state.outgoing.unshift(Buffer.concat(state.outgoing.splice(0, count), octets));
}

/** Handles bytes from the peer. */
export function receive(state: TransportState, chunk: Uint8Array): void {
  if (state.closeReason !== null) return;
  try {
    state.parser.push(chunk, (reply) => takeReply(state, reply));
  } catch (error) {
    if (!(error instanceof ReplySyntaxError)) throw error;
    closeTransport(state, `protocol error: ${error.message}`);
  }
}

function takeReply(state: TransportState, reply: Reply): void {
  const first = state.waiting[0];
  // There is no command for this reply. It is a farewell (421), or it would be read as the reply to our next command.
  if (first === undefined) {
    closeTransport(state, `closed with ${replyText(reply)}`);
    return;
  }
  first.replies.push(reply);
  if (first.replies.length === first.timeouts.length) {
    state.waiting.shift();
    first.resolve({ replies: first.replies, trouble: null, early: state.written < first.end });
  }
  if (state.waiting.length > 0) restartTimer(state);
}

/** Sets the time by which the next reply, or progress of what we send, must come. */
function restartTimer(state: TransportState): void {
  const first = state.waiting[0];
  const replyMs = first?.timeouts[first.replies.length] ?? state.blockTimeoutMs;
  const limitMs = state.outgoing.length > 0 ? Math.min(state.blockTimeoutMs, replyMs) : replyMs;
  state.limitMs = limitMs;
  state.deadline = state.deps.clock.elapsed() + limitMs;
  // If the timer fires too early, it starts again. So no message needs its own timer.
  if (state.timer !== null && state.timer.at <= state.deadline) return;
  state.timer?.cancel();
  state.timer = { at: state.deadline, cancel: state.deps.clock.after(limitMs, () => timerExpired(state)) };
}

function timerExpired(state: TransportState): void {
  const now = state.deps.clock.elapsed();
  const lateMs = now - (state.timer?.at ?? now);
  state.timer = null;
  if (state.waiting.length === 0 || state.closeReason !== null) return;
  // The process was suspended. Timers fire before sockets are read, so the reply may be waiting. If the peer has accepted
  // the message, closing now would send it twice.
  if (lateMs > LATE_MS) state.deadline = now + state.limitMs;
  const leftMs = state.deadline - now;
  if (leftMs <= 0) closeTransport(state, "timeout");
  else
    state.timer = { at: state.deadline, cancel: state.deps.clock.after(leftMs, () => timerExpired(state)) };
}

/** Closes the connection once and resolves all waiting exchanges. */
export function closeTransport(state: TransportState, reason: string): void {
  if (state.closeReason !== null) return;
  state.closeReason = reason;
  state.timer?.cancel();
  state.timer = null;
  state.outgoing = [];
  state.socket?.terminate();
  for (const { replies, resolve } of state.waiting.splice(0))
    resolve({ replies, trouble: reason, early: false });
  state.onClosed?.();
}
