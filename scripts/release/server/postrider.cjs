#!/usr/bin/env node
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { command } = require("./index.cjs");

const [program, ...first] = command;
const given = process.argv.slice(2);
// `dev` is the service as you try it: it also takes what programs of this machine send by SMTP.
const isDev = given[0] === "dev";
const args = isDev ? ["serve", ...given.slice(1)] : given;
const env = {
  // Collects the heap as on a small machine.
  BUN_JSC_forceRAMSize: "400000000",
  ...(isDev ? { DELIVERY: "capture", SUBMISSION_PORT: "1025" } : {}),
  ...process.env,
};
const child = spawn(program, [...first, ...args], { stdio: "inherit", env });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`postrider: ${program} cannot be started (${error.message})`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
