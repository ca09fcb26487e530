import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { serverFiles } from "../../scripts/release/npm.ts";
import { sdkFiles } from "../../src/wiring/sdk/package.ts";
import type { PackageFile } from "../../src/wiring/sdk/tarball.ts";

/** A package as npm installs it. */
export interface Installed {
  files: readonly PackageFile[];
  folder: string;
}

/**
 * Installs our packages for a project within the clone, as npm would from their files. Bun and libSQL, on which the service
 * depends, are found above it.
 */
export async function installPackages(project: string): Promise<{ server: Installed; client: Installed }> {
  return {
    server: await install(project, "@postrider/server", await serverFiles()),
    client: await install(project, "postrider", await sdkFiles()),
  };
}

async function install(project: string, name: string, files: readonly PackageFile[]): Promise<Installed> {
  const folder = join(project, "node_modules", name);
  rmSync(folder, { recursive: true, force: true });
  for (const { path, content, isProgram } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    await Bun.write(file, content);
    if (isProgram === true) chmodSync(file, 0o755);
  }
  return { files, folder };
}
