import { beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runConfig, writeImage } from "../../scripts/release/image.ts";
import { newFolder } from "../support/folder.ts";

const dockerfile = readFileSync(join(import.meta.dir, "../../Dockerfile"), "utf8");
const folder = newFolder("image");
const image = join(folder, "image.tar");

/** Makes a root like that of the image, but with a small program. */
function rootOf(arch: string): string {
  const root = join(folder, arch);
  for (const path of ["usr/local/bin", "data", "tmp"]) mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, "usr/local/bin/postrider"), arch);
  chmodSync(join(root, "data"), 0o700);
  chmodSync(join(root, "tmp"), 0o1777);
  return root;
}

const roots = { x64: rootOf("x64"), arm64: rootOf("arm64") };
const write = (to: string) => writeImage({ version: "1.0.0", epoch: 1_800_000_000, dockerfile, roots }, to);

beforeAll(() => write(image));

function output(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(stderr.toString());
  return stdout.toString();
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the layout holds.
function blob({ digest }: { digest: string }): any {
  return JSON.parse(output("tar", "-xOf", image, `blobs/${digest.replace(":", "/")}`));
}

/** Returns the manifest of the platform, and its configuration. */
function platform(architecture: string) {
  const [named] = JSON.parse(output("tar", "-xOf", image, "index.json")).manifests;
  const found = blob(named).manifests.find(
    (one: { platform: { architecture: string } }) => one.platform.architecture === architecture,
  );
  const manifest = blob(found);
  return { named, manifest, config: blob(manifest.config) };
}

test.each(["amd64", "arm64"])(
  "the image for %s runs as a user without rights and checks its health",
  (arch) => {
    const { named, config } = platform(arch);
    expect(named.annotations).toMatchObject({ "org.opencontainers.image.ref.name": "postrider:1.0.0" });
    expect(config.architecture).toBe(arch);
    expect(config.config).toMatchObject({
      User: "65532:65532",
      WorkingDir: "/data",
      Entrypoint: ["postrider"],
      Cmd: ["serve"],
      ExposedPorts: { "3000/tcp": {}, "2525/tcp": {}, "5353/udp": {} },
      Healthcheck: { Test: ["CMD", "postrider", "readyz"], Interval: 10e9, Retries: 3 },
    });
    expect(config.config.Env).toContain("DATA_DIR=/data");
  },
);

test("the image's folder for data belongs to its user, and all else to root", () => {
  const { manifest } = platform("amd64");
  const layer = join(folder, "layer.tar.gz");
  const [{ digest }] = manifest.layers;
  writeFileSync(layer, Bun.spawnSync(["tar", "-xOf", image, `blobs/${digest.replace(":", "/")}`]).stdout);
  const lines = output("tar", "-tvzf", layer, "--numeric-owner").trim().split("\n");
  const owned = lines
    .map((line) => line.split(/\s+/))
    .map((parts) => `${parts[0]} ${parts[1]} ${parts.at(-1)}`);
  expect(owned).toContain("drwx------ 65532/65532 data/");
  expect(owned).toContain("drwxrwxrwt 0/0 tmp/");
  expect(owned.filter((line) => !line.includes(" 0/0 "))).toHaveLength(1);
});

test("equal roots give equal images", async () => {
  const again = join(folder, "again.tar");
  write(again);
  const bytes = [image, again].map((path) => Bun.file(path).bytes());
  const [first, second] = await Promise.all(bytes);
  expect(Buffer.from(first ?? []).equals(Buffer.from(second ?? []))).toBe(true);
});

test.skipIf(Bun.which("skopeo") === null).each(["amd64", "arm64"])(
  "skopeo accepts the image for %s",
  (arch) => {
    const shown = output(
      "skopeo",
      `--override-arch=${arch}`,
      "inspect",
      `oci-archive:${image}:postrider:1.0.0`,
    );
    expect(JSON.parse(shown)).toMatchObject({ Architecture: arch, Os: "linux" });
  },
);

test("an instruction of the Dockerfile that the image would lack is refused", () => {
  expect(() => runConfig("FROM scratch\nSTOPSIGNAL SIGINT\n")).toThrow("STOPSIGNAL");
});

test("a build on a machine without Git names no commit", () => {
  const build = join(import.meta.dir, "../../scripts/build.ts");
  const source = `import { definitions } from ${JSON.stringify(build)}; console.log(definitions("program").BUILT_FROM);`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", source], { env: { PATH: "/no/programs" } });
  expect(stdout.toString()).toBe('""\n');
});
