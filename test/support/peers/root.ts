import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { MAILBOX_UID, needsRoot, PEERS } from "./peer.ts";
import { newFolder, removeFolder } from "../folder.ts";

/** A root folder with one mail server, which runs as if it owned the machine. */
export interface PeerRoot {
  folder: string;
  /** Runs a program in the root. */
  spawn(command: readonly string[], log: string): Bun.Subprocess;
  /** Ends every process in the root and deletes the folder. */
  remove(): Promise<void>;
}

export interface RootOptions {
  /** Name below `node_modules/.cache/peers`. */
  name: string;
  /** Users that the server runs as, with their homes. */
  users: readonly { name: string; home: string }[];
  /** Files by their path in the root. */
  files: Readonly<Record<string, string>>;
  /** Folders by their path in the root, with their owners. */
  folders: Readonly<Record<string, string>>;
}

/** User ids of a root count up from here. None of them exists outside. */
const FIRST_UID = 64_200;

/** Why a server cannot run in a root here, or null if it can. */
export function rootMissing(name: string): string | null {
  if (!existsSync(join(PEERS, name, ".made-by"))) return `scripts/test-tools.sh could not unpack ${name}`;
  return needsRoot();
}

/** Copies the unpacked server into its own root. */
export function makeRoot({ name, users, files, folders }: RootOptions): PeerRoot {
  const folder = newFolder(name);
  // The server runs as other users than ours, and this root belongs to us.
  chmodSync(folder, 0o755);
  cpSync(join(PEERS, name), folder, { recursive: true, verbatimSymlinks: true });
  const accounts = [
    { name: "root", uid: 0, home: "/" },
    { name: "inbox", uid: MAILBOX_UID, home: "/home/inbox" },
    ...users.map((user, at) => ({ ...user, uid: FIRST_UID + at })),
  ];
  const account = accounts.map((user) => `${user.name}:x:${user.uid}:${user.uid}::${user.home}:/bin/sh\n`);
  const all: RootOptions["files"] = {
    "etc/passwd": account.join(""),
    "etc/group": accounts.map((user) => `${user.name}:x:${user.uid}:\n`).join(""),
    "etc/hosts": "127.0.0.1 localhost\n",
    // Uses no name service: all names that the server needs are in its own files.
    "etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\nlookup file\n",
    ...files,
  };
  for (const [path, owner] of Object.entries({ "home/inbox": "inbox", ...folders })) {
    mkdirSync(join(folder, path), { recursive: true });
    const uid = accounts.find((user) => user.name === owner)?.uid ?? 0;
    chownSync(join(folder, path), uid, uid);
    chmodSync(join(folder, path), 0o711);
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text, { mode: path.endsWith(".key") ? 0o600 : 0o644 });
  }
  makeDevices(folder);
  const remove = async (): Promise<void> => {
    endProcesses(folder);
    await Promise.all(children.map((child) => child.exited));
    removeFolder(folder);
    process.off("exit", atExit);
  };
  const atExit = (): void => endProcesses(folder);
  const children: Bun.Subprocess[] = [];
  process.on("exit", atExit);
  return {
    folder,
    remove,
    spawn(command, log) {
      const out = Bun.file(join(folder, log));
      const child = Bun.spawn(["chroot", folder, ...command], {
        stdin: "ignore",
        stdout: out,
        stderr: out,
        cwd: folder,
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      });
      children.push(child);
      return child;
    },
  };
}

const DEVICES = [
  ["null", 3],
  ["zero", 5],
  ["random", 8],
  ["urandom", 9],
] as const;

function makeDevices(folder: string): void {
  for (const [name, minor] of DEVICES)
    Bun.spawnSync(["mknod", "-m", "666", join(folder, "dev", name), "c", "1", String(minor)]);
}

/** Ends the processes whose root is the folder or inside it, including those that the server detached. */
function endProcesses(folder: string): void {
  for (const pid of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
    const root = rootOf(pid);
    if (root === folder || root?.startsWith(`${folder}/`)) process.kill(Number(pid), "SIGKILL");
  }
}

function rootOf(pid: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/root`);
  } catch {
    // The process has ended since the list was made.
    return null;
  }
}
