/** Three hosts on one network: namespaces of this machine, which are gone with the run. */
import { $ } from "bun";

/** A host: its address, and the words that run a command on it. */
export interface Host {
  ip: string;
  inside: readonly string[];
  /** Takes it off the network, and puts it back. */
  unplug(): Promise<void>;
  plugIn(): Promise<void>;
}

/** Marks the process inside the namespace. */
const INSIDE = "--inside-hosts";
/** The network of the hosts. The run itself, which is the outside world, has the first address. */
const NET = "10.77.0";
const BRIDGE = "hosts";
const FIRST_HOST = 11;
export const OUTSIDE_IP = `${NET}.1`;

/** Returns why there can be no hosts; null if there can. */
export async function hostsMissing(): Promise<string | null> {
  if (process.getuid?.() !== 0) return "only root can make network namespaces";
  const name = `probe-${process.pid}`;
  const made = await $`ip netns add ${name}`.quiet().nothrow();
  await $`ip netns del ${name}`.quiet().nothrow();
  return made.exitCode === 0 ? null : `ip netns: ${made.stderr.toString().trim()}`;
}

/**
 * Runs this program again in a separate network namespace, and exits with its status. Inside, it makes the hosts.
 */
export async function enterHosts(count: number): Promise<Host[]> {
  if (!process.argv.includes(INSIDE)) {
    const command = ["unshare", "--net", "--", process.execPath, ...process.argv.slice(1), INSIDE];
    const env = { ...Bun.env, TEST_HOST: OUTSIDE_IP };
    const inside = Bun.spawn(command, { env, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
    process.on("exit", () => inside.kill("SIGTERM"));
    process.exit(await inside.exited);
  }
  await $`ip link set lo up && ip link add ${BRIDGE} type bridge && ip addr add ${OUTSIDE_IP}/24 dev ${BRIDGE} && ip link set ${BRIDGE} up`.quiet();
  return Promise.all(Array.from({ length: count }, (_, at) => makeHost(at)));
}

async function makeHost(at: number): Promise<Host> {
  const name = `host${at + 1}`;
  const [space, ip, port] = [`${name}-${process.pid}`, `${NET}.${FIRST_HOST + at}`, `port${at + 1}`];
  process.on("exit", () => Bun.spawnSync(["ip", "netns", "del", space]));
  await $`ip netns add ${space} && ip link add ${port} type veth peer name eth0 netns ${space} && ip link set ${port} master ${BRIDGE} up`.quiet();
  const inside = ["ip", "netns", "exec", space];
  await $`${inside} ip addr add ${ip}/24 dev eth0 && ${inside} ip link set eth0 up && ${inside} ip link set lo up`.quiet();
  return {
    ip,
    // Each host has its own name. Each command replaces the one before, so the started process is the last one.
    inside: [...inside, "unshare", "--uts", "sh", "-c", `hostname ${name} && exec "$@"`, "sh"],
    unplug: async () => void (await $`ip link set ${port} down`.quiet()),
    plugIn: async () => void (await $`ip link set ${port} up`.quiet()),
  };
}
