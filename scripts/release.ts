// `npm run release` makes everything that is published of a version, in `dist/release`. docs/releasing.md says how a version is made.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build, git } from "./build.ts";
import { makeDeb } from "./release/deb.ts";
import { writeImage } from "./release/image.ts";
import { makeImageRoot } from "./release/image-root.ts";
import { releaseNpm } from "./release/npm.ts";
import { ARCHS, type Arch, linuxTarget } from "./release/target.ts";

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
  const [, epoch = "0", maintainer = "Postrider <postrider@localhost>"] =
    /^(\d+) (.*)$/.exec(git("log", "-1", "--format=%ct %an <%ae>")) ?? [];
  return { version, epoch: Number(epoch), maintainer };
}

/** Returns a file's SHA-256 in hex, without reading it whole. */
export async function sha256Of(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk);
  return hash.digest("hex");
}

/** Writes `SHA256SUMS` for all files of a folder, in the form that `sha256sum --check` reads. */
export async function writeSums(folder: string): Promise<void> {
  const names = readdirSync(folder).filter((name) => name !== "SHA256SUMS");
  let sums = "";
  for (const name of names.sort()) {
    sums += `${await sha256Of(join(folder, name))}  ${name}\n`;
  }
  await Bun.write(join(folder, "SHA256SUMS"), sums);
}

/** Makes the image for all processors as one archive. */
function makeImage(about: Release, folder: string): void {
  const work = mkdtempSync(join(ROOT, "dist/.image-"));
  try {
    const roots = ARCHS.map((arch) => {
      const root = join(work, arch, "root");
      makeImageRoot(programOf(about, arch, folder), arch, root, join(work, arch));
      return [arch, root];
    });
    const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
    const image = { ...about, dockerfile, roots: Object.fromEntries(roots) };
    writeImage(image, join(folder, `postrider-${about.version}-image.tar`));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function programOf({ version }: Release, arch: Arch, folder: string): string {
  return join(folder, `postrider-${version}-linux-${arch}`);
}

async function release(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const about = thisRelease();
  for (const arch of ARCHS) {
    const program = programOf(about, arch, folder);
    await build(program, await linuxTarget(arch));
    makeDeb({ ...about, program, arch, compression: "xz" }, folder);
  }
  makeImage(about, folder);
  await releaseNpm(folder);
  await writeSums(folder);
}

if (import.meta.main) {
  // The bundler names modules by their path from the current folder.
  process.chdir(ROOT);
  // The modes of files in packages do not depend on who makes them.
  process.umask(0o022);
  const folder = join(ROOT, "dist/release");
  await release(folder);
  for (const name of readdirSync(folder).sort())
    console.log(`${(Bun.file(join(folder, name)).size / 1e6).toFixed(1).padStart(7)} MB  ${name}`);
}
