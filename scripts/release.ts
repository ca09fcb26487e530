// `npm run release` makes everything that is published of a version, in `dist/release`. docs/releasing.md says how a version is made.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.ts";
import { makeDeb } from "./release/deb.ts";
import { releaseNpm } from "./release/npm.ts";
import { ARCHS, linuxTarget } from "./release/target.ts";

const ROOT = join(import.meta.dir, "..");

/** What names a release: its version, and from the commit its time and who answers for it. */
export interface Release {
  version: string;
  /** Seconds since 1970. */
  epoch: number;
  maintainer: string;
}

/** Reads them from package.json and Git. Outside a clone the time is 1970. */
export function thisRelease(): Release {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const command = ["git", "-C", ROOT, "log", "-1", "--format=%ct %an <%ae>"];
  const { success, stdout } = Bun.spawnSync(command, { stderr: "ignore" });
  const [, epoch = "0", maintainer = "Postrider <postrider@localhost>"] =
    (success && /^(\d+) (.*)$/m.exec(stdout.toString())) || [];
  return { version, epoch: Number(epoch), maintainer };
}

/** Writes `SHA256SUMS` for all files of a folder, in the form that `sha256sum --check` reads. */
export async function writeSums(folder: string): Promise<void> {
  const names = readdirSync(folder).filter((name) => name !== "SHA256SUMS");
  let sums = "";
  for (const name of names.sort()) {
    const hash = new Bun.CryptoHasher("sha256");
    for await (const chunk of Bun.file(join(folder, name)).stream()) hash.update(chunk);
    sums += `${hash.digest("hex")}  ${name}\n`;
  }
  await Bun.write(join(folder, "SHA256SUMS"), sums);
}

async function release(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const about = thisRelease();
  for (const arch of ARCHS) {
    const program = join(folder, `postrider-${about.version}-linux-${arch}`);
    await build(program, await linuxTarget(arch));
    makeDeb({ ...about, program, arch, compression: "xz" }, folder);
  }
  await releaseNpm(folder);
  await writeSums(folder);
}

if (import.meta.main) {
  // The bundler names modules by their path from the current folder.
  process.chdir(ROOT);
  const folder = join(ROOT, "dist/release");
  await release(folder);
  for (const name of readdirSync(folder).sort())
    console.log(`${(Bun.file(join(folder, name)).size / 1e6).toFixed(1).padStart(7)} MB  ${name}`);
}
