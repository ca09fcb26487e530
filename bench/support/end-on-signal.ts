/** Loaded before a program, so that one which is told to end does it as at its own end, and what it started ends too. */
for (const [signal, code] of [
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)
  process.on(signal, () => process.exit(code));
