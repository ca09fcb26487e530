// A thread that obeys its mails: for what no mail brings the real one to.
import { type AnyAsked, type Found, type ReadingKind, unread } from "../../src/flows/readings.ts";
import type { FromThread } from "../../src/wiring/threads/protocol.ts";
import { beatAndWork } from "./beating-thread.ts";

type Said = FromThread<Found<ReadingKind>>;

const held: Said[] = [];

beatAndWork<AnyAsked>((id, asked) => {
  const text = Buffer.from(asked.raw).toString();
  if (text.startsWith("spin")) for (;;);
  if (text.startsWith("throw")) throw new Error("a mail's doing");
  if (text.startsWith("lost")) return;
  const said: Said = text.startsWith("fail")
    ? { id, error: "no way" }
    : { id, found: unread("worker.test", asked) };
  if (text.startsWith("hold")) held.push(said);
  else for (const answer of [...held.splice(0), said]) postMessage(answer);
});
