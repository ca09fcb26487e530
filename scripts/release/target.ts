import { mkdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Processors that programs are released for, in Bun's words. */
export const ARCHS = ["x64", "arm64"] as const;
export type Arch = (typeof ARCHS)[number];

/** A platform that the program is built for. */
export interface Target {
  /** libSQL's name of it, which is part of the name of the addon's package. */
  libsql: string;
  /** Where the addon's package and Bun come from; null takes them from the packages and the Bun of this machine. */
  from: { modules: string; bun: string; bunTarget: Bun.Build.CompileTarget } | null;
}

/** Returns this machine's platform. */
export function ownTarget(): Target {
  const { platform, arch } = process;
  if (platform !== "linux") return { libsql: `${platform}-${arch}`, from: null };
  // The report is typed as a bare object.
  const { header } = process.report.getReport() as { header: object };
  return { libsql: `linux-${arch}-${"glibcVersionRuntime" in header ? "gnu" : "musl"}`, from: null };
}

/**
 * Returns Linux with glibc on the processor. If this is not such a machine, Bun installs its own program and libSQL's addon for it in
 * `node_modules/.cache`, from the registry of the user and with the hashes of bun.lock.
 * @throws if they cannot be installed
 */
export async function linuxTarget(arch: Arch): Promise<Target> {
  const own = ownTarget();
  const libsql = `linux-${arch}-gnu`;
  if (own.libsql === libsql) return own;
  const folder = join(ROOT, "node_modules/.cache", libsql);
  await installFor(arch, folder);
  const modules = join(folder, "node_modules");
  const bun = join(modules, `@oven/bun-linux-${arch === "arm64" ? "aarch64" : arch}/bin/bun`);
  return { libsql, from: { modules, bun, bunTarget: `bun-linux-${arch}` } };
}

/** Installs the packages that the service runs as a machine with the processor would. */
async function installFor(arch: Arch, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  // The registry may be set in a file of this folder.
  for (const name of ["package.json", "bun.lock", ".npmrc"]) {
    const file = Bun.file(join(ROOT, name));
    if (await file.exists()) await Bun.write(join(folder, name), file);
  }
  const flags = ["--frozen-lockfile", "--production", "--omit=peer", "--ignore-scripts", "--os=linux"];
  const { success, stderr } = Bun.spawnSync([process.execPath, "install", `--cpu=${arch}`, ...flags], {
    cwd: folder,
  });
  if (!success) throw new Error(`the packages for linux-${arch} cannot be installed: ${stderr}`);
}
