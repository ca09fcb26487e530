/**
 * Lets the event loop do what else has become ready. Reads of a database's file, and other work that is all synchronous,
 * take no turn of it by themselves: what is long of it does so in between, else it would hold everybody up.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
