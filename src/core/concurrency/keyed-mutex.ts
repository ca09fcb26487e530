/** Runs the jobs of one key one after another. A job of several keys runs after all earlier jobs of any of them. */
export type KeyedMutex = <Result>(
  key: string | readonly string[],
  job: () => Promise<Result>,
) => Promise<Result>;

/** Creates a mutex per key within this process, for a read and a write with no other in between. */
export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return async (key, job) => {
    const keys = typeof key === "string" ? [key] : key;
    // Each waits only for earlier ones, so no two wait for each other.
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
