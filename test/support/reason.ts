/** Why it was rejected. Not by `rejects`, which lets no message of a thread through while it waits. */
export const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "it was not",
    (error: unknown) => error,
  );
