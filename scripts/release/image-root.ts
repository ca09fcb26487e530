import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DEBIAN_ARCH } from "./deb.ts";
import type { Arch } from "./target.ts";

/** Debian's packages of which the image contains files. */
const PACKAGES = ["libc6", "libgcc-s1", "base-files", "ca-certificates"];
/** What the program and libSQL's addon are linked with. glibc resolves names by itself. */
const LIBRARIES = ["libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1"];
const LOADERS: Record<Arch, string> = {
  x64: "lib64/ld-linux-x86-64.so.2",
  arm64: "lib/ld-linux-aarch64.so.1",
};
const TRIPLETS: Record<Arch, string> = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };
const ACCOUNTS = {
  passwd: "root:x:0:0::/:/sbin/nologin\npostrider:x:65532:65532::/data:/sbin/nologin\n",
  group: "root:x:0:\npostrider:x:65532:\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

function run(command: readonly string[], cwd?: string): string {
  const { success, stdout, stderr } = Bun.spawnSync([...command], cwd === undefined ? {} : { cwd });
  if (!success) throw new Error(`${command[0]}: ${stderr}`);
  return stdout.toString();
}

/** Downloads the packages for the processor into a folder, from this machine's sources. Needs no root. Returns their paths. */
function download(arch: Arch, folder: string): string[] {
  for (const path of ["lists/partial", "cache/archives/partial", "debs"])
    mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, "status"), "");
  const options = [
    `APT::Architecture=${DEBIAN_ARCH[arch]}`,
    `APT::Architectures=${DEBIAN_ARCH[arch]}`,
    `Dir::State::Lists=${folder}/lists`,
    `Dir::State::status=${folder}/status`,
    `Dir::Cache=${folder}/cache`,
    "APT::Sandbox::User=root",
    "Acquire::Retries=2",
  ].flatMap((option) => ["-o", option]);
  run(["apt-get", "-q", ...options, "update"]);
  const debs = join(folder, "debs");
  const get = (names: readonly string[]) => run(["apt-get", "-q", ...options, "download", ...names], debs);
  get(PACKAGES);
  // The license of libgcc-s1 is in the package that it names.
  const libgcc = readdirSync(debs).find((name) => name.startsWith("libgcc-s1_")) ?? "";
  get([/gcc-\d+-base/.exec(run(["dpkg-deb", "-f", join(debs, libgcc), "Depends"]))?.[0] ?? ""]);
  return readdirSync(debs).map((name) => join(debs, name));
}

/**
 * Makes the image's root: the program, the libraries that it is linked with, certificates, and the records by which scanners find
 * versions. It is what the Dockerfile makes, for a processor that need not be this machine's.
 * @param work takes what Debian's packages contain
 * @throws if a package cannot be had, or lacks a file
 */
export function makeImageRoot(program: string, arch: Arch, root: string, work: string): void {
  const from = join(work, "unpacked");
  const put = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const deb of download(arch, work)) {
    run(["dpkg-deb", "-x", deb, from]);
    const fields = run(["dpkg-deb", "-f", deb]);
    const name = /^Package: (.*)$/m.exec(fields)?.[1] ?? "";
    put(`var/lib/dpkg/status.d/${name}`, `${fields.trimEnd()}\nStatus: install ok installed\n`);
    const copyright = join(from, "usr/share/doc", name, "copyright");
    if (existsSync(copyright)) put(`usr/share/doc/${name}/copyright`, readFileSync(copyright));
  }
  const libraries = LIBRARIES.map((name) => `lib/${TRIPLETS[arch]}/${name}`);
  for (const path of [...libraries, LOADERS[arch]]) {
    const found = [path, `usr/${path}`].find((one) => existsSync(join(from, one)));
    if (found === undefined) throw new Error(`Debian's packages have no ${path}`);
    put(path, readFileSync(join(from, found)));
    chmodSync(join(root, path), 0o755);
  }
  put("etc/os-release", readFileSync(join(from, "usr/lib/os-release")));
  put("etc/host.conf", readFileSync(join(from, "etc/host.conf")));
  for (const [name, content] of Object.entries(ACCOUNTS)) put(`etc/${name}`, content);
  const authorities = join(from, "usr/share/ca-certificates/mozilla");
  const bundle = readdirSync(authorities)
    .sort()
    .map((name) => readFileSync(join(authorities, name), "utf8"));
  put("etc/ssl/certs/ca-certificates.crt", bundle.join(""));
  // Bun looks here.
  symlinkSync("certs/ca-certificates.crt", join(root, "etc/ssl/cert.pem"));
  put("usr/share/doc/postrider/copyright", readFileSync(`${program}.licenses`));
  mkdirSync(join(root, "usr/local/bin"), { recursive: true });
  cpSync(program, join(root, "usr/local/bin/postrider"));
  for (const [path, mode] of [
    ["tmp", 0o1777],
    ["data", 0o700],
  ] as const) {
    mkdirSync(join(root, path));
    chmodSync(join(root, path), mode);
  }
}
