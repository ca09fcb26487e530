/** CPU milliseconds that this process has used. Load from other processes does not change it. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
