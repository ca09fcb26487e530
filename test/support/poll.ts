const POLL_MS = 10;

/** Asks again and again until it holds, for states that nothing tells of but themselves. Only the test's own time limits it. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(POLL_MS);
}
