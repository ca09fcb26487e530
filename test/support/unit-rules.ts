import { posix } from "node:path";

/** Names that open a socket, start a process or a thread, or write a file. */
const OUTSIDE =
  /\bBun\.(?:serve|listen|connect|spawn|spawnSync|udpSocket|write)\b|\bcreateServer\b|\bnew Worker\(|\bmkdtemp|\bwriteFile|\bnode:(?:dgram|http|https|tls|child_process|fs\/promises)\b/;
const IMPORTED = /(?:from|import) "(\.[^"]+)"/g;

/**
 * Returns the faults of the tests in `test/unit`: a folder that `src` does not have, or input and output in a test
 * or its helpers. Takes the sources of all tests and helpers by path, and the folders of `src`.
 */
export function unitFaults(texts: Readonly<Record<string, string>>, folders: ReadonlySet<string>): string[] {
  return Object.keys(texts)
    .filter((path) => path.startsWith("test/unit/"))
    .sort()
    .flatMap((path) => {
      const folder = posix.dirname(path).replace("test/unit", "src");
      const lost = folders.has(folder) ? [] : [`${path}: there is no ${folder}`];
      const outside = helpersOf(path, texts).find((file) => OUTSIDE.test(texts[file] ?? ""));
      return outside === undefined ? lost : [...lost, `${path}: ${outside} does input or output`];
    });
}

/**
 * Returns a test and every helper in `test` that it imports, directly or through another helper.
 * @param closed helpers whose own imports do not count
 */
export function helpersOf(
  path: string,
  texts: Readonly<Record<string, string>>,
  closed: readonly string[] = [],
): string[] {
  const found = new Set([path]);
  for (const file of found) {
    if (closed.includes(file)) continue;
    for (const [, specifier = ""] of (texts[file] ?? "").matchAll(IMPORTED)) {
      const target = posix.join(posix.dirname(file), specifier);
      if (Object.hasOwn(texts, target)) found.add(target);
    }
  }
  return [...found];
}
