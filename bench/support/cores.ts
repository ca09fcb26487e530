/** Lets processes with all their threads, and the processes that they start later, run on these cores only, named as taskset does. */
export function useCores(cores: string, pids: readonly number[] = [process.pid]): void {
  for (const pid of pids) Bun.spawnSync(["taskset", "-a", "-p", "-c", cores, String(pid)]);
}
