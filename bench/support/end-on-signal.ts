/**
 * Is loaded before a program. If a signal ends the program, its exit handlers run and end the processes that it
 * started.
 */
for (const [signal, code] of [
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)
  process.on(signal, () => process.exit(code));
