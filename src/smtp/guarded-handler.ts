import type { Log } from "../log.ts";
import type { Envelope, MailHandler } from "./envelope.ts";
import type { MessageMemory } from "./message-memory.ts";
import { REPLIES } from "./reply.ts";

/**
 * The handler as connections ask it: where it fails that is logged, and the answer is 451. It gives a message's memory back
 * once it has answered. Where it threw it may still be reading, so the memory is left to the garbage collector.
 */
export function guardedHandler(
  { handler, log }: { handler: MailHandler; log: Log },
  memory: MessageMemory,
): Required<MailHandler> {
  const guarded = async <Answer>(envelope: Envelope, ask: () => Promise<Answer>) => {
    try {
      return await ask();
    } catch (error) {
      log.error("mail could not be taken", {
        ip: envelope.ip,
        recipients: envelope.rcptTo.length,
        error: error instanceof Error ? error.stack : String(error),
      });
      return REPLIES.localTrouble;
    }
  };
  return {
    recipient: (address, envelope) => guarded(envelope, () => handler.recipient(address, envelope)),
    message: (envelope, raw) =>
      guarded(envelope, async () => {
        const answer = await handler.message(envelope, raw);
        memory.giveBack(raw.buffer);
        return answer;
      }),
    stopping: () => handler.stopping?.(),
  };
}
