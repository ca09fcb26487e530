/** A file of a package. */
export interface PackageFile {
  /** Its path in the package. */
  path: string;
  content: string | Uint8Array;
  isProgram?: boolean;
}

const BLOCK = 512;
const MAX_PATH_CHARS = 100;
/** The time of every file, as npm has it. With that of the build, equal files would make unequal packages. */
const SECONDS = Date.UTC(1985, 9, 26, 8, 15) / 1000;
const GZIP_LEVEL = 9;

/** Returns an npm package: a tar archive (POSIX ustar), compressed. Equal files give equal bytes. */
export function tarball(files: readonly PackageFile[]): Uint8Array<ArrayBuffer> {
  const blocks = files.flatMap(({ path, content, isProgram }) => {
    const bytes = Buffer.from(content as string);
    const padding = Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK);
    return [headerOf(`package/${path}`, bytes.length, isProgram === true ? 0o755 : 0o644), bytes, padding];
  });
  return Bun.gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: GZIP_LEVEL });
}

/** @throws if the path does not fit */
function headerOf(path: string, octets: number, mode: number): Buffer {
  if (path.length > MAX_PATH_CHARS) throw new Error(`${path} is longer than ${MAX_PATH_CHARS} characters`);
  const header = Buffer.alloc(BLOCK);
  const write = (at: number, length: number, value: number): void =>
    void header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at);
  header.write(path, 0);
  write(100, 8, mode);
  write(108, 8, 0);
  write(116, 8, 0);
  write(124, 12, octets);
  write(136, 12, SECONDS);
  // The checksum counts its own field as spaces.
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  write(
    148,
    7,
    header.reduce((sum, octet) => sum + octet, 0),
  );
  return header;
}
