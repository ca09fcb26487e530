import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { serverFiles } from "../../scripts/release/npm.ts";
import type { PackageFile } from "../../src/wiring/sdk/tarball.ts";

const ROOT = join(import.meta.dir, "../..");

/** The folder of the projects in which the packages are installed. Those that they depend on are found above it. */
export const PROJECTS = join(ROOT, "sdk/examples");

/** Installs `@postrider/server` for the projects below `sdk/examples`, as npm would. Returns its files and its folder. */
export async function installServer(): Promise<{ files: readonly PackageFile[]; folder: string }> {
  const files = await serverFiles();
  return { files, folder: await install("@postrider/server", files) };
}

async function install(name: string, files: readonly PackageFile[]): Promise<string> {
  const folder = join(PROJECTS, "node_modules", name);
  const made = `${folder}.${process.pid}`;
  for (const { path, content, isProgram } of files) {
    const file = join(made, path);
    mkdirSync(dirname(file), { recursive: true });
    await Bun.write(file, content);
    if (isProgram === true) chmodSync(file, 0o755);
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  return folder;
}
