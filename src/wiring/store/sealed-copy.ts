import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { Decrypter, Encrypter } from "age-encryption";
import { syncFile } from "../process/disk.ts";

// The format is age's (https://age-encryption.org/v1), so that `age --decrypt` opens a backup without this program.

/** Work factor of scrypt, as a power of two. The passphrase is a key of 256 bits, so it cannot be guessed. */
const WORK_FACTOR = 1;

/** Returns the passphrase that age asks for. */
export function passphraseOf(key: Uint8Array): string {
  return Buffer.from(key).toString("base64url");
}

/** Encrypts a file into another one, and returns when that is on disk. Then checks it: what it opens to must be the same. */
export async function sealFile(from: string, to: string, key: Uint8Array): Promise<void> {
  const encrypter = new Encrypter();
  encrypter.setPassphrase(passphraseOf(key));
  encrypter.setScryptWorkFactor(WORK_FACTOR);
  const given = createHash("sha256");
  await write(await encrypter.encrypt(hashed(from, given)), to);
  const opened = createHash("sha256");
  for await (const chunk of await decrypted(to, [key])) opened.update(chunk);
  if (!opened.digest().equals(given.digest()))
    throw new Error(`${to} opens to something else than it was made from`);
}

/**
 * Decrypts a file into another one, and returns when that is on disk.
 * @param keys one of them must open it
 * @throws if none does, or the file was changed or is cut off
 */
export async function openSealed(from: string, to: string, keys: readonly Uint8Array[]): Promise<void> {
  await write(await decrypted(from, keys), to);
}

async function decrypted(file: string, keys: readonly Uint8Array[]): Promise<ReadableStream<Uint8Array>> {
  const decrypter = new Decrypter();
  for (const key of keys) decrypter.addPassphrase(passphraseOf(key));
  return decrypter.decrypt(Bun.file(file).stream());
}

function hashed(file: string, hash: ReturnType<typeof createHash>): ReadableStream<Uint8Array> {
  return Bun.file(file)
    .stream()
    .pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array>({
        transform(chunk, out) {
          hash.update(chunk);
          out.enqueue(chunk);
        },
      }),
    );
}

async function write(content: ReadableStream<Uint8Array>, to: string): Promise<void> {
  // Only the owner may read it.
  writeFileSync(to, "", { mode: 0o600 });
  const sink = Bun.file(to).writer();
  try {
    for await (const chunk of content) {
      sink.write(chunk);
      await sink.flush();
    }
  } finally {
    await sink.end();
  }
  syncFile(to);
}
