/** Ends a run that takes too long, as one whose goal does not hold, together with its processes. */
export function endWithin(limitMs: number): void {
  setTimeout(() => {
    console.error(`The run is not done within ${limitMs / 1000} s.`);
    process.exit(1);
  }, limitMs).unref();
}
