// Writes the image as an OCI archive. Without it a version has an image only for the processor it was made on: buildah needs root and an
// emulator for the other, takes minutes, drops the health check from OCI images, and gives other bytes each time.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEBIAN_ARCH } from "./deb.ts";
import type { Arch } from "./target.ts";

const OCI = "application/vnd.oci.image";
/** Owner of DATA_DIR in the image, as in the Dockerfile. */
const USER = "65532";
const NANOSECONDS = 1e9;

/** A content and what refers to it (OCI image specification, descriptor). */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

export interface ImageInput {
  version: string;
  /** Time of every file, seconds since 1970: equal inputs give equal bytes. */
  epoch: number;
  /** The Dockerfile. Its last stage says how the image is run. */
  dockerfile: string;
  /** The folder with the files of each platform. */
  roots: Readonly<Partial<Record<Arch, string>>>;
}

/** Returns the instructions of the last stage, without the one that copies. */
function instructions(dockerfile: string): [string, string][] {
  const stage =
    dockerfile
      .replace(/^#.*\n/gm, "")
      .replace(/\\\n\s*/g, "")
      .split(/^FROM /m)
      .at(-1) ?? "";
  return [...stage.matchAll(/^([A-Z]+) +(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]);
}

function healthcheck(text: string): object {
  const [, options = "", command = "[]"] = /^(.*) CMD (.*)$/.exec(text) ?? [];
  const given = new Map(
    [...options.matchAll(/--([a-z-]+)=(\d+)/g)].map(([, name, value]) => [name, Number(value)]),
  );
  const time = (name: string) => (given.get(name) ?? 0) * NANOSECONDS;
  return {
    Test: ["CMD", ...JSON.parse(command)],
    Interval: time("interval"),
    Timeout: time("timeout"),
    StartPeriod: time("start-period"),
    Retries: given.get("retries"),
  };
}

/**
 * Returns how the image is run, from the last stage of a Dockerfile. OCI has no health check: `Healthcheck` is Docker's field, which
 * Docker reads in an OCI image, too.
 * @throws if the stage has an instruction that is not known here
 */
export function runConfig(dockerfile: string): Record<string, unknown> {
  const words = (text: string) => text.split(/\s+/);
  const set = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, {}]));
  const readers: Record<string, (text: string) => Record<string, unknown>> = {
    COPY: () => ({}),
    ENV: (text) => ({ Env: words(text) }),
    USER: (text) => ({ User: text }),
    WORKDIR: (text) => ({ WorkingDir: text }),
    VOLUME: (text) => ({ Volumes: set(words(text)) }),
    EXPOSE: (text) => ({
      ExposedPorts: set(words(text).map((port) => (port.includes("/") ? port : `${port}/tcp`))),
    }),
    HEALTHCHECK: (text) => ({ Healthcheck: healthcheck(text) }),
    ENTRYPOINT: (text) => ({ Entrypoint: JSON.parse(text) }),
    CMD: (text) => ({ Cmd: JSON.parse(text) }),
  };
  return Object.assign(
    {},
    ...instructions(dockerfile).map(([name, text]) => {
      const reader = readers[name];
      if (reader === undefined)
        throw new Error(`the last stage of the Dockerfile has ${name}, which is not known here`);
      return reader(text);
    }),
  );
}

function sha256(content: Uint8Array | string): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

/** Makes a tar whose bytes depend only on names, modes and contents. `data` in it belongs to the service's user. */
function tarOf(folder: string, tar: string, epoch: number): void {
  const always = ["--format=gnu", "--sort=name", `--mtime=@${epoch}`, "--numeric-owner", "-C", folder];
  const add = (action: string, owner: string, names: readonly string[]) => {
    const by = [`--owner=${owner}`, `--group=${owner}`];
    const { success, stderr } = Bun.spawnSync(["tar", action, "-f", tar, ...always, ...by, ...names]);
    if (!success) throw new Error(`tar: ${stderr}`);
  };
  const names = readdirSync(folder).sort();
  add(
    "-c",
    "0",
    names.filter((name) => name !== "data"),
  );
  if (names.includes("data")) add("-r", USER, ["data"]);
}

/**
 * Writes the image for all platforms as one OCI archive, which Docker, podman and skopeo load. Needs no root.
 * @throws if `tar` is missing or fails
 */
export function writeImage({ version, epoch, dockerfile, roots }: ImageInput, archive: string): void {
  const work = mkdtempSync(`${archive}-`);
  const layout = join(work, "layout");
  const created = new Date(epoch * 1000).toISOString().replace(".000", "");
  mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
  const store = (content: Uint8Array | string, mediaType: string): Descriptor => {
    const digest = sha256(content);
    writeFileSync(join(layout, "blobs", digest.replace(":", "/")), content);
    return { mediaType, digest, size: Buffer.byteLength(content) };
  };
  const storeJson = (content: object, mediaType: string) => store(JSON.stringify(content), mediaType);
  const manifestOf = (architecture: string, root: string): object => {
    const tar = join(work, "layer.tar");
    tarOf(root, tar, epoch);
    const bytes = readFileSync(tar);
    const layer = store(Bun.gzipSync(bytes), `${OCI}.layer.v1.tar+gzip`);
    const platform = { architecture, os: "linux" };
    const rootfs = { type: "layers", diff_ids: [sha256(bytes)] };
    const history = [{ created, created_by: "npm run release" }];
    const about = { created, ...platform, config: runConfig(dockerfile), rootfs, history };
    const config = storeJson(about, `${OCI}.config.v1+json`);
    const mediaType = `${OCI}.manifest.v1+json`;
    return { ...storeJson({ schemaVersion: 2, mediaType, config, layers: [layer] }, mediaType), platform };
  };
  try {
    const manifests = Object.entries(roots).map(([arch, root]) =>
      manifestOf(DEBIAN_ARCH[arch as Arch], root),
    );
    // Tools load an archive by the one entry of its outer index, so the platforms are in an index below it.
    const mediaType = `${OCI}.index.v1+json`;
    const inner = storeJson({ schemaVersion: 2, mediaType, manifests }, mediaType);
    // podman and skopeo read the first name, Docker the second.
    const annotations = {
      "org.opencontainers.image.ref.name": `postrider:${version}`,
      "io.containerd.image.name": `docker.io/library/postrider:${version}`,
    };
    const named = { ...inner, annotations };
    writeFileSync(
      join(layout, "index.json"),
      JSON.stringify({ schemaVersion: 2, mediaType, manifests: [named] }),
    );
    writeFileSync(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
    tarOf(layout, archive, epoch);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
