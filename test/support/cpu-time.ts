/** Milliseconds of the processors' time that this process has had so far: what else the machine does takes nothing of it. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
