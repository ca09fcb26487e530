import { dlopen, FFIType, ptr } from "bun:ffi";

/** CLOCK_THREAD_CPUTIME_ID of clock_gettime(2). */
const THREAD_CLOCK = 3;
const library = dlopen("libc.so.6", {
  clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
});
const time = new BigInt64Array(2);

/**
 * Processor time of this thread, milliseconds: what else the machine does takes nothing of it. Bun's own figure is that of
 * getrusage(2), which moves on by some milliseconds at a time.
 */
export function threadMs(): number {
  library.symbols.clock_gettime(THREAD_CLOCK, ptr(time));
  const [seconds = 0n, nanoseconds = 0n] = time;
  return Number(seconds) * 1e3 + Number(nanoseconds) / 1e6;
}
