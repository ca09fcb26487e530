import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sha256Of, writeSums } from "../../scripts/release.ts";
import { DEBIAN_ARCH, debianVersion, makeDeb, packagedUnit } from "../../scripts/release/deb.ts";
import { loadConfig } from "../../src/config.ts";
import { BUILD_LIMIT_MS, builtProgram } from "../support/built-program.ts";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: dpkg unpacks 170 MB. */
setDefaultTimeout(90_000);

const ARCH = process.arch === "arm64" ? "arm64" : "x64";
const DEPLOY = join(import.meta.dir, "../../deploy");
const asRoot = process.getuid?.() === 0 ? [] : ["fakeroot"];
const hasTools = ["dpkg", "dpkg-deb", ...asRoot].every((name) => Bun.which(name) !== null);

const folder = newFolder("deb");
const root = join(folder, "root");
const inRoot = (path: string) => join(root, path);
let deb = "";

async function packed(into: string): Promise<string> {
  const program = await builtProgram();
  const input = { arch: ARCH, version: "1.0.0-rc.1", epoch: 1_700_000_000, compression: "none" } as const;
  return makeDeb({ ...input, program, maintainer: "Ana <ana@example.com>" }, into);
}

beforeAll(async () => {
  if (!hasTools) return;
  deb = await packed(folder);
  for (const path of ["var/lib/dpkg", "var/lib"]) mkdirSync(inRoot(path), { recursive: true });
  for (const path of ["status", "available"]) writeFileSync(inRoot(`var/lib/dpkg/${path}`), "");
  standIns();
}, BUILD_LIMIT_MS);

/** Replaces tools by scripts that record their arguments, because the package's scripts run on this machine. */
function standIns(): void {
  mkdirSync(join(folder, "bin"));
  for (const [name, code] of [
    ["getent", 2],
    ["adduser", 0],
    ["chown", 0],
    ["systemctl", 0],
  ] as const) {
    const file = join(folder, "bin", name);
    writeFileSync(file, `#!/bin/sh\necho "${name} $*" >>${join(folder, "called")}\nexit ${code}\n`);
    chmodSync(file, 0o755);
  }
}

/** Runs dpkg on the root. Returns what it printed. */
function dpkg(...args: string[]): string {
  const options = ["--force-script-chrootless", "--force-depends", "--force-not-root", "--force-confold"];
  const run = Bun.spawnSync([...asRoot, "dpkg", `--root=${root}`, ...options, ...args], {
    env: { PATH: `${join(folder, "bin")}:${Bun.env.PATH}:/usr/sbin:/sbin`, LC_ALL: "C" },
  });
  const said = `${run.stdout}${run.stderr}`;
  if (!run.success) throw new Error(said);
  return said;
}

const called = () => readFileSync(join(folder, "called"), "utf8");

test.skipIf(!hasTools)("the Debian package describes itself", () => {
  const field = (name: string) => Bun.spawnSync(["dpkg-deb", "-f", deb, name]).stdout.toString().trim();
  expect(field("Version")).toBe("1.0.0~rc.1");
  expect(field("Architecture")).toBe(DEBIAN_ARCH[ARCH]);
  expect(field("Maintainer")).toBe("Ana <ana@example.com>");
  expect(field("Depends")).toContain("libc6");
});

test.skipIf(!hasTools)("equal programs give equal packages", async () => {
  const [first, second] = await Promise.all([deb, await packed(newFolder("deb-again"))].map(sha256Of));
  expect(first).toBe(second);
});

test.skipIf(!hasTools)("installing makes the user and a closed folder, and starts nothing", () => {
  expect(dpkg("-i", deb)).toContain("systemctl enable --now postrider");
  expect(called()).toContain("adduser --quiet --system --group");
  expect(called()).not.toContain("restart");
  expect(statSync(inRoot("var/lib/postrider")).mode & 0o777).toBe(0o700);
  expect(statSync(inRoot("etc/postrider.env")).mode & 0o777).toBe(0o600);
  expect(Bun.spawnSync([inRoot("usr/bin/postrider"), "--version"]).success).toBe(true);
  expect(readdirSync(inRoot("usr/share/doc/postrider")).sort()).toEqual([
    "CHANGELOG.md.gz",
    "changelog.gz",
    "copyright",
    "examples",
    "licenses.gz",
    "sbom.cdx.json",
  ]);
});

test.skipIf(!hasTools)("an upgrade keeps the settings", () => {
  appendFileSync(inRoot("etc/postrider.env"), "LOG_LEVEL=debug\n");
  writeFileSync(inRoot("var/lib/postrider/postrider.db"), "mail");
  expect(dpkg("-i", deb)).toContain("over (1.0.0~rc.1)");
  expect(readFileSync(inRoot("etc/postrider.env"), "utf8")).toEndWith("LOG_LEVEL=debug\n");
});

test.skipIf(!hasTools)("removing leaves data and settings, and purging says where the data is", () => {
  dpkg("--remove", "postrider");
  expect(existsSync(inRoot("usr/bin/postrider"))).toBe(false);
  expect(existsSync(inRoot("etc/postrider.env"))).toBe(true);
  expect(called()).toContain("disable postrider.service");
  expect(dpkg("--purge", "postrider")).toContain("still in /var/lib/postrider");
  expect(existsSync(inRoot("etc/postrider.env"))).toBe(false);
  expect(readFileSync(inRoot("var/lib/postrider/postrider.db"), "utf8")).toBe("mail");
});

test.skipIf(Bun.which("systemd-analyze") === null)("systemd finds no fault in the packaged unit", () => {
  const unit = packagedUnit(readFileSync(join(DEPLOY, "postrider.service"), "utf8"));
  expect(unit).toContain("User=postrider\n");
  // It checks that the program is there.
  const file = join(folder, "postrider.service");
  writeFileSync(file, unit.replace("/usr/bin/postrider", "/bin/true"));
  const { stderr } = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", file]);
  expect(stderr.toString()).not.toContain("postrider.service");
});

test("the packaged settings are valid as they are, and with every comment removed", () => {
  const text = readFileSync(join(DEPLOY, "postrider.env"), "utf8");
  const settings = (lines: RegExp) => Object.fromEntries([...text.matchAll(lines)].map(([, a, b]) => [a, b]));
  expect(loadConfig(settings(/^([A-Z_]+)=(.*)$/gm)).backupEvery).not.toBeNull();
  const { BACKUP_EVERY: _, ...all } = settings(/^#?([A-Z_]+)=(.*)$/gm);
  expect(Object.keys(all).length).toBeGreaterThan(20);
  expect(() => loadConfig(all)).not.toThrow();
});

test.each([
  ["1.0.0", "1.0.0"],
  ["1.0.0-rc.1", "1.0.0~rc.1"],
])("Debian's version of %s is %s", (version, expected) => {
  expect(debianVersion(version)).toBe(expected);
});

test.skipIf(Bun.which("sha256sum") === null)(
  "sha256sum checks every file, and finds a changed one",
  async () => {
    const files = newFolder("sums");
    for (const name of ["a", "b c"]) writeFileSync(join(files, name), name);
    await writeSums(files);
    const check = () => Bun.spawnSync(["sha256sum", "--check", "--quiet", "SHA256SUMS"], { cwd: files });
    expect(check().exitCode).toBe(0);
    rmSync(join(files, "a"));
    writeFileSync(join(files, "a"), "other");
    expect(check().stdout.toString()).toContain("a: FAILED");
  },
);
