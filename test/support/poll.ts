const POLL_MS = 10;

/** Polls until the condition holds, for states that send no signal. Only the test's time limit ends it. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(POLL_MS);
}
