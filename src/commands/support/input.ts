import { openSync, closeSync, readSync } from "node:fs";
import { usage } from "./exit.ts";

/** Largest key file that is read, bytes. A key has some fifty characters. */
const MAX_KEY_FILE_BYTES = 4096;

/** Returns standard input as text. Throws (usage) if it is longer than `maxBytes`. */
export async function readInput(maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of Bun.stdin.stream()) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw usage(`standard input is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Returns the secret in a file, or on standard input if the path is `-`, without spaces around it. */
export async function readSecret(path: string): Promise<string> {
  const text = path === "-" ? await readInput(MAX_KEY_FILE_BYTES) : readStart(path);
  const secret = text.trim();
  if (!/^[\x21-\x7e]+$/.test(secret)) throw usage(`--key-file ${path} does not hold an API key`);
  return secret;
}

function readStart(path: string): string {
  const bytes = Buffer.alloc(MAX_KEY_FILE_BYTES + 1);
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    throw usage(`--key-file ${path} cannot be read`);
  }
  try {
    const length = readSync(file, bytes);
    if (length > MAX_KEY_FILE_BYTES)
      throw usage(`--key-file ${path} is longer than ${MAX_KEY_FILE_BYTES} bytes`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
