/** Does the jobs of one key one after another. */
export type OneByOne = <Result>(key: string, job: () => Promise<Result>) => Promise<Result>;

/** For looking and writing without another in between, and for turns between projects. It holds within this process. */
export function oneByOne(): OneByOne {
  const last = new Map<string, Promise<unknown>>();
  return async (key, job) => {
    const before = last.get(key) ?? Promise.resolve();
    const own = before.then(job, job);
    last.set(key, own);
    try {
      return await own;
    } finally {
      if (last.get(key) === own) last.delete(key);
    }
  };
}
