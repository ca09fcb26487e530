/** Is loaded before the service. Leaks a megabyte a second. */
const MEBIBYTE = 1024 * 1024;
const held: Uint8Array[] = [];
setInterval(() => held.push(new Uint8Array(MEBIBYTE).fill(1)), 1000).unref();
