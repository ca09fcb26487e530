/** Does the jobs of one key one after another; one of several keys, after all that came before it for any of them. */
export type OneByOne = <Result>(
  key: string | readonly string[],
  job: () => Promise<Result>,
) => Promise<Result>;

/** For looking and writing without another in between, and for turns between projects. It holds within this process. */
export function oneByOne(): OneByOne {
  const last = new Map<string, Promise<unknown>>();
  return async (key, job) => {
    const keys = typeof key === "string" ? [key] : key;
    // Each waits for earlier ones alone, so no two wait for each other.
    const before = Promise.allSettled(keys.map((one) => last.get(one)));
    const own = before.then(job);
    for (const one of keys) last.set(one, own);
    try {
      return await own;
    } finally {
      for (const one of keys) if (last.get(one) === own) last.delete(one);
    }
  };
}
