/** Loaded before the service, it leaks: a megabyte a second, for good. */
const MEBIBYTE = 1024 * 1024;
const held: Uint8Array[] = [];
setInterval(() => held.push(new Uint8Array(MEBIBYTE).fill(1)), 1000).unref();
