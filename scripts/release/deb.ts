// Makes the Debian package. An operator without containers would miss it: by hand they make the user, the unit and the settings, and
// again in each upgrade. debhelper needs a source package and root's build tools; `dpkg-deb` packs a folder.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Arch } from "./target.ts";

const ROOT = join(import.meta.dir, "../..");
const DEPLOY = join(ROOT, "deploy");

/** Debian's names of the processors. */
export const DEBIAN_ARCH: Record<Arch, string> = { x64: "amd64", arm64: "arm64" };

/** Higher levels take minutes for a tenth less. With several threads the bytes would depend on the machine. */
const COMPRESSION = { xz: ["-Zxz", "-z1", "--threads-max=1"], none: ["-Znone"] };
const MORE_LICENSES = "The program contains packages under other licenses: see licenses.gz in this folder.\n";

export interface DebInput {
  /** The program, with `.licenses` and `.cdx.json` next to it. */
  program: string;
  arch: Arch;
  version: string;
  /** Time of every file, seconds since 1970: equal inputs give equal bytes. */
  epoch: number;
  /** Who answers for the package: a name and an address. */
  maintainer: string;
  /** How `dpkg-deb` compresses. Tests do not. */
  compression: "xz" | "none";
}

/** A file of the package. */
interface Packed {
  path: string;
  content: string | Uint8Array;
  mode?: number;
}

/** Returns the version as Debian orders it: `1.0.0-rc.1` comes before `1.0.0`. */
export function debianVersion(version: string): string {
  return version.replace("-", "~");
}

/**
 * Returns the unit of `deploy`, for the user and the paths of the package.
 * @throws if the unit has changed so that it has nothing to replace
 */
export function packagedUnit(unit: string): string {
  const changes = [
    [/^#.*\n(?=#|\[Unit\])/gm, ""],
    ["/usr/local/bin/postrider", "/usr/bin/postrider"],
    // A user that stays owns the data, so that commands can run as that user. The rest is what DynamicUser also does.
    ["DynamicUser=yes", "User=postrider\nGroup=postrider\nRemoveIPC=yes\nRestrictSUIDSGID=yes"],
  ] as const;
  return changes.reduce((text, [from, to]) => {
    const changed = text.replace(from, to);
    if (changed === text) throw new Error(`deploy/postrider.service has no ${from}`);
    return changed;
  }, unit);
}

function control({ arch, version, maintainer }: DebInput, bytes: number): string {
  // Bun needs glibc 2.17, and libSQL's addon 2.18 and libgcc. The unit reloads by the kill of procps.
  return `Package: postrider
Version: ${debianVersion(version)}
Architecture: ${DEBIAN_ARCH[arch]}
Maintainer: ${maintainer}
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: adduser, ca-certificates, libc6 (>= 2.18), libgcc-s1 | libgcc1, procps
Recommends: systemd
Suggests: redis-server
Section: mail
Priority: optional
Description: self-hosted service that sends and receives email over a REST API
 Postrider takes messages by REST and SMTP, signs and delivers them, receives
 mail for its domains, and pushes signed webhooks. It is one process with one
 file database.
`;
}

/** Returns the changelog in the form that Debian's tools read. The changes themselves are in CHANGELOG.md. */
function changelog({ version, epoch, maintainer }: DebInput): string {
  const time = new Date(epoch * 1000).toUTCString().replace("GMT", "+0000");
  const head = `postrider (${debianVersion(version)}) unstable; urgency=medium`;
  return `${head}\n\n  * See CHANGELOG.md.gz.\n\n -- ${maintainer}  ${time}\n`;
}

function gzipped(text: string | Uint8Array): Uint8Array {
  return Bun.gzipSync(Buffer.from(text), { level: 9 });
}

function filesOf(input: DebInput): Packed[] {
  const doc = (name: string, content: string | Uint8Array) => ({
    path: `usr/share/doc/postrider/${name}`,
    content,
  });
  const deployed = (name: string) => readFileSync(join(DEPLOY, name));
  const unit = packagedUnit(readFileSync(join(DEPLOY, "postrider.service"), "utf8"));
  return [
    { path: "usr/bin/postrider", content: readFileSync(input.program), mode: 0o755 },
    { path: "usr/lib/systemd/system/postrider.service", content: unit },
    { path: "etc/postrider.env", content: deployed("postrider.env"), mode: 0o600 },
    { path: "usr/share/lintian/overrides/postrider", content: deployed("deb/lintian-overrides") },
    doc("copyright", `${readFileSync(join(ROOT, "LICENSE"), "utf8")}\n${MORE_LICENSES}`),
    doc("licenses.gz", gzipped(readFileSync(`${input.program}.licenses`))),
    doc("sbom.cdx.json", readFileSync(`${input.program}.cdx.json`)),
    doc("changelog.gz", gzipped(changelog(input))),
    doc("CHANGELOG.md.gz", gzipped(readFileSync(join(ROOT, "CHANGELOG.md")))),
    ...["alerts.yaml", "grafana.json"].map((name) => doc(`examples/${name}`, deployed(name))),
  ];
}

function write(folder: string, { path, content, mode = 0o644 }: Packed): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

function controlFiles(input: DebInput, files: readonly Packed[]): Packed[] {
  const sum = (content: string | Uint8Array) => new Bun.CryptoHasher("md5").update(content).digest("hex");
  const sums = files.filter(({ path }) => !path.startsWith("etc/"));
  const bytes = files.reduce((total, { content }) => total + content.length, 0);
  const scripts = ["postinst", "prerm", "postrm"].map((name) => ({
    path: `DEBIAN/${name}`,
    content: readFileSync(join(DEPLOY, "deb", name)),
    mode: 0o755,
  }));
  return [
    { path: "DEBIAN/control", content: control(input, bytes) },
    { path: "DEBIAN/conffiles", content: "/etc/postrider.env\n" },
    {
      path: "DEBIAN/md5sums",
      content: sums.map(({ path, content }) => `${sum(content)}  ${path}\n`).join(""),
    },
    ...scripts,
  ];
}

/**
 * Makes the Debian package in a folder with `dpkg-deb`, without root. Returns its path.
 * @throws if `dpkg-deb` is missing or fails
 */
export function makeDeb(input: DebInput, folder: string): string {
  const work = mkdtempSync(join(folder, ".deb-"));
  try {
    chmodSync(work, 0o755);
    const files = filesOf(input);
    for (const file of [...files, ...controlFiles(input, files)]) write(work, file);
    const name = `postrider_${debianVersion(input.version)}_${DEBIAN_ARCH[input.arch]}.deb`;
    const deb = join(folder, name);
    const command = [
      "dpkg-deb",
      "--root-owner-group",
      ...COMPRESSION[input.compression],
      "--build",
      work,
      deb,
    ];
    const { success, stderr } = Bun.spawnSync(command, {
      env: { PATH: Bun.env.PATH ?? "", SOURCE_DATE_EPOCH: String(input.epoch) },
    });
    if (!success) throw new Error(`dpkg-deb: ${stderr}`);
    return deb;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
