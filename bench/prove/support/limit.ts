/** Ends a run that takes longer than it may, as one whose goal does not hold. What it has started ends with it. */
export function endWithin(limitMs: number): void {
  setTimeout(() => {
    console.error(`The run is not done within ${limitMs / 1000} s.`);
    process.exit(1);
  }, limitMs).unref();
}
