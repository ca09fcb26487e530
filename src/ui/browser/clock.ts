/**
 * Time in the browser. No other file of the dashboard asks for the time or sets a timer, so that a test can find every
 * place that waits.
 */

/** Returns milliseconds since the epoch. */
export function now(): number {
  return Date.now();
}

/** Runs a function once after that many milliseconds. Returns a function that cancels it. */
export function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/** Runs a function at that interval, milliseconds. Returns a function that ends it. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms);
  return () => clearInterval(timer);
}

/** A function that runs at most once in a span of time: at once after a pause, else when the span is over. */
export interface Throttled {
  (): void;
  /** Cancels a run that still waits. */
  cancel(): void;
}

/** Returns a function that hands on the first call at once, and those within `wait()` milliseconds after it as one call. */
export function throttle(wait: () => number, run: () => void): Throttled {
  let last = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | null = null;
  const go = () => {
    cancel = null;
    last = now();
    run();
  };
  const throttled = () => {
    if (cancel !== null) return;
    const left = last + wait() - now();
    if (left <= 0) go();
    else cancel = after(left, go);
  };
  return Object.assign(throttled, {
    cancel: () => {
      cancel?.();
      cancel = null;
    },
  });
}
