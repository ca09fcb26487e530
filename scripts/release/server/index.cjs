const { spawnSync } = require("node:child_process");
const { existsSync, statSync } = require("node:fs");
const { createRequire } = require("node:module");
const { dirname, join } = require("node:path");

/** Until its install script has run, the package `bun` holds a placeholder of a few hundred bytes. */
const MIN_PROGRAM_OCTETS = 1_000_000;

function isProgram(path) {
  return existsSync(path) && statSync(path).size > MIN_PROGRAM_OCTETS;
}

/** Returns the path of Bun. If the installer runs no install scripts, the packages `@oven/bun-<platform>` have it. */
function bunPath() {
  const manifest = require.resolve("bun/package.json");
  const linked = join(dirname(manifest), "bin/bun.exe");
  if (isProgram(linked)) return linked;
  const near = createRequire(manifest);
  for (const name of Object.keys(near("./package.json").optionalDependencies ?? {}))
    for (const file of ["bin/bun", "bin/bun.exe"]) {
      const path = pathIn(near, name, file);
      if (path !== null && isProgram(path) && spawnSync(path, ["--version"]).status === 0) return path;
    }
  throw new Error("The package `bun` holds no program for this platform: install it again");
}

function pathIn(near, name, file) {
  try {
    return join(dirname(near.resolve(`${name}/package.json`)), file);
  } catch {
    return null;
  }
}

exports.command = [
  bunPath(),
  // Settings come only from the environment, even if the current folder has a .env or a bunfig.toml.
  "--no-env-file",
  `--config=${join(__dirname, "bunfig.toml")}`,
  join(__dirname, "dist/main.js"),
];
