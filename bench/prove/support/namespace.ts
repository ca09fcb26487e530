import { $ } from "bun";

/** Says that this process is the one inside. */
const INSIDE = "--inside-namespace";

/**
 * Goes on only inside a network namespace of its own, where every address of IPv4 and IPv6 is this machine's: a
 * connection to any address, private or public, then reaches a listener of ours and nothing else. Outside it runs the
 * same program inside, and exits as that does. Linux only; without root it takes a user namespace too.
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

/** Makes an address unreachable inside, as one of a host that is down. */
export async function makeUnreachable(ip: string): Promise<void> {
  await $`ip route add unreachable ${ip}/32 table local`.quiet();
}
