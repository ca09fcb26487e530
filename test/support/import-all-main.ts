// Imports every file of a folder, in a process that its test starts. Prints a line for each effect that a file has when it is
// imported, and ends by itself unless a file left something open.
import { join } from "node:path";

const [, , root = "", ...files] = process.argv;
/** Milliseconds after the last import after which something that a file left open is reported. */
const PATIENCE_MS = 2000;
const { setTimeout: wait } = globalThis;
let current = "";

/** Replaces a function of the system by one that also prints which file called it. */
function watch(holder: object, name: string): void {
  const original: unknown = Reflect.get(holder, name);
  if (typeof original !== "function") throw new Error(`there is no ${name} to watch`);
  const watched = new Proxy(original, {
    apply: (target, self, given) => {
      report(name);
      return Reflect.apply(target, self, given);
    },
    construct: (target, given) => {
      report(name);
      return Reflect.construct(target, given);
    },
  });
  Reflect.set(holder, name, watched);
}

/** Libraries may prepare themselves. Only what our own code asks for counts. */
function report(name: string): void {
  const callers = (new Error().stack ?? "").split("\n").slice(3);
  const first = callers.find((line) => line.includes("/node_modules/") || line.includes(root));
  if (first !== undefined && !first.includes("/node_modules/")) process.stdout.write(`${current}: ${name}\n`);
}

for (const name of ["setTimeout", "setInterval", "setImmediate", "fetch", "Worker", "WebSocket"])
  watch(globalThis, name);
for (const name of ["serve", "listen", "connect", "udpSocket", "spawn", "spawnSync", "write"])
  watch(Bun, name);

for (const file of files) {
  current = file;
  await import(join(root, file));
}
process.stdout.write(`imported ${files.length} files\n`);
// It does not keep the process alive, so it runs only if something else does.
wait(() => {
  process.stdout.write("something is still open\n");
  process.exit();
}, PATIENCE_MS).unref();
