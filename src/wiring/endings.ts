/**
 * Does the steps of an ending one after another, those of one step at once. One that fails keeps none of the others from
 * being done.
 * @throws what failed first, when all are done
 */
export async function endAll(steps: readonly (readonly (() => unknown)[])[]): Promise<void> {
  const failures: unknown[] = [];
  const done = async (end: () => unknown): Promise<void> => {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  };
  for (const step of steps) await Promise.all(step.map(done));
  if (failures.length > 0) throw failures[0];
}
