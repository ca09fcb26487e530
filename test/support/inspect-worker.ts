// A thread that obeys the message it reads, to test failures that no message causes in the real one.
import { systemClock } from "../../src/clock.ts";
import {
  type AnyAsked,
  type Found,
  type ReadingDeps,
  type ReadingKind,
  runReading,
} from "../../src/flows/mime/reading-tasks.ts";
import type { FromCpu } from "../../src/wiring/cpu/serve.ts";
import { beatAndWork } from "./beating-thread.ts";

type Said = FromCpu<Found<ReadingKind>>;

/** Domains under these names have that DMARC policy; there is nothing else in DNS. */
const POLICIES = ["reject", "quarantine", "none"] as const;
const deps: ReadingDeps = {
  clock: systemClock,
  host: "mx.test",
  async resolve(name) {
    const policy = POLICIES.find((one) => name === `_dmarc.${one}.test`);
    if (policy === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return [[`v=DMARC1; p=${policy}`]];
  },
};

const held: Said[] = [];

beatAndWork<AnyAsked>((id, asked) => {
  const text = Buffer.from(asked.raw).toString();
  if (obeys("spin", text, asked)) for (;;);
  if (obeys("throw", text, asked)) throw new Error("a mail's doing");
  if (obeys("lost", text, asked)) return;
  if (text.startsWith("fail")) answer(text, { id, error: "no way" });
  else void runReading(deps, asked).then((found) => answer(text, { id, found }));
});

/**
 * A message that begins with the word misbehaves while it is read; one with "always" after it while its header is
 * read, too.
 */
function obeys(word: string, text: string, { kind }: AnyAsked): boolean {
  return text.startsWith(kind === "header" ? `${word} always` : word);
}

function answer(text: string, said: Said): void {
  if (text.startsWith("hold")) held.push(said);
  else for (const one of [...held.splice(0), said]) postMessage(one);
}
