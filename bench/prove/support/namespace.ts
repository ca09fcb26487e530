import { $ } from "bun";

/** Marks the process inside the namespace. */
const INSIDE = "--inside-namespace";

/**
 * Returns only inside a separate network namespace, in which every IPv4 and IPv6 address is this machine's. A
 * connection to any address then reaches a listener of ours. Outside, it runs the same program inside, and exits
 * with its status. Linux only; without root it also uses a user namespace.
 */
export async function enterNamespace(): Promise<void> {
  if (process.argv.includes(INSIDE)) return everyAddressIsOurs();
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  const inside = Bun.spawn(
    ["unshare", "--net", ...asRoot, "--", process.execPath, ...process.argv.slice(1), INSIDE],
    { stdin: "ignore", stdout: "inherit", stderr: "inherit" },
  );
  process.on("exit", () => inside.kill("SIGKILL"));
  process.exit(await inside.exited);
}

async function everyAddressIsOurs(): Promise<void> {
  await $`ip link set lo up`.quiet();
  await $`ip route add local default dev lo`.quiet();
  await $`ip -6 route add local default dev lo`.quiet();
}

/** Makes an address unreachable inside, like that of a host that is down. */
export async function makeUnreachable(ip: string): Promise<void> {
  await $`ip route add unreachable ${ip}/32 table local`.quiet();
}
