import { systemClock } from "./clock.ts";
import { failureOf, runCommand } from "./commands/run.ts";
import { COMMANDS, findCommand } from "./commands/table.ts";
import { loadConfig, useUtc } from "./config.ts";

// New files hold messages and secrets, so only their owner may read them.
process.umask(0o077);
useUtc();
const given = process.argv.slice(2);
// The reader may close the pipe, as in `postrider dns zone | head`. The service itself continues then.
process.stdout.on("error", (error) => {
  if (findCommand(given)?.entry === COMMANDS.serve) return;
  const code = "code" in error ? String(error.code) : error.message;
  if (code === "EPIPE") process.exit(0);
  fail(new Error(`standard output cannot be written (${code})`));
});
await main();

async function main(): Promise<void> {
  try {
    process.exitCode = await runCommand(given, {
      clock: systemClock,
      readConfig: () => loadConfig(process.env, process.stderr.isTTY === true),
      out: (text) => void process.stdout.write(text),
      err: (text) => void process.stderr.write(text),
      outIsTerminal: process.stdout.isTTY === true,
    });
  } catch (error) {
    fail(error);
  }
}

/** Prints the error and ends the process, even if parts of the service still run. */
function fail(error: unknown): never {
  const { code, says } = failureOf(error, given);
  console.error(says.trimEnd());
  process.exit(code);
}
