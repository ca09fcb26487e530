/**
 * Returns the reason of a rejection. `rejects` is no alternative: it blocks messages from threads while it waits.
 */
export const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "it was not",
    (error: unknown) => error,
  );
