/**
 * Runs the steps of a shutdown one after another, and the actions of a step at once. If one fails, the others still run.
 * @throws the first error, after all steps
 */
export async function runShutdownSteps(steps: readonly (readonly (() => unknown)[])[]): Promise<void> {
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
