/** Runs work. Returns the microseconds of processor time that this process took meanwhile: they stay the same if other users are busy. */
export async function processorTime(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
