// Clients of `stall`, in a separate process: `large-mail.ts OPTIONS` with `LargeMailOptions` as JSON. Prints each
// answer.
import type { LargeMailOptions, LargeMailAnswer } from "./large-mail-options.ts";
import { bringMail } from "./mail-client.ts";

const options: LargeMailOptions = JSON.parse(process.argv[2] ?? "");
const bytes = `${options.header}\r\n${options.line.repeat(options.octets / options.line.length)}\r\n`;

async function bring(): Promise<void> {
  const began = performance.now();
  const { code } = await bringMail(options.port, options.from, options.to, bytes);
  const answer: LargeMailAnswer = { code, ms: performance.now() - began };
  console.log(JSON.stringify(answer));
}

/** Brings messages one after another until the time is over. */
async function client(): Promise<void> {
  do await bring();
  while (performance.now() < options.ms);
}

await Promise.all(Array.from({ length: options.atOnce }, client));
