import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** Everything that the program is made of, besides the packages that the lock file names. */
const SOURCES = "{src,db,docs,scripts,sdk}/**/*";
const MORE_SOURCES = ["package.json", "bun.lock", "LICENSE", "bunfig.toml"];
/** Time that a build may take on a busy machine, milliseconds. */
export const BUILD_LIMIT_MS = 180_000;
const POLL_MS = 100;
const DONE = "done";
/** Age from which another build is removed, milliseconds. Another run may still start a younger one. */
const OLD_MS = 60 * 60 * 1000;

/**
 * Builds the program with `scripts/build.ts`, once for all tests and runs as long as its sources stay the same. It starts in half
 * the time of the sources. Next to it are its licenses. Returns its path.
 */
export function builtProgram(): Promise<string> {
  built ??= buildOnce();
  return built;
}

let built: Promise<string> | null = null;

async function buildOnce(): Promise<string> {
  const cache = join(ROOT, "dist/for-tests");
  const folder = join(cache, await hashOfSources());
  const program = join(folder, "postrider");
  mkdirSync(cache, { recursive: true });
  const until = performance.now() + BUILD_LIMIT_MS;
  while (!existsSync(join(folder, DONE))) {
    if (takes(folder)) build(program);
    else if (performance.now() > until) rmSync(folder, { recursive: true });
    else await Bun.sleep(POLL_MS);
  }
  return program;
}

/** Returns true if this process is the one that builds into the folder. */
function takes(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

function build(program: string): void {
  const folder = dirname(program);
  const { success, stderr } = Bun.spawnSync([process.execPath, join(ROOT, "scripts/build.ts"), program]);
  if (!success) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(stderr.toString());
  }
  for (const name of readdirSync(dirname(folder))) {
    const other = join(dirname(folder), name);
    if (Date.now() - statSync(other).mtimeMs > OLD_MS) rmSync(other, { recursive: true, force: true });
  }
  writeFileSync(join(folder, DONE), "");
}

async function hashOfSources(): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const files = [...new Bun.Glob(SOURCES).scanSync({ cwd: ROOT }), ...MORE_SOURCES].sort();
  for (const file of files) {
    // Files that other tests install or build are not sources.
    if (file.includes("node_modules") || file.startsWith("sdk/dist/")) continue;
    hash.update(file);
    hash.update(await Bun.file(join(ROOT, file)).bytes());
  }
  return hash.digest("hex").slice(0, 16);
}
