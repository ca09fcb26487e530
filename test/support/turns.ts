/** Returns the result, and how many event loop turns passed until then. */
export async function countTurns<Result>(
  run: () => Promise<Result>,
): Promise<{ result: Result; turns: number }> {
  let turns = 0;
  let done = false;
  const count = (): void => {
    if (done) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  const result = await run();
  done = true;
  return { result, turns };
}
