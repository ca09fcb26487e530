import type { Log } from "../../log.ts";
import type { Envelope, MailHandler } from "../session/envelope.ts";
import type { FailedLogins } from "./failed-logins.ts";
import type { MessageMemory } from "../session/message-memory.ts";
import { REPLIES } from "../session/reply.ts";

/**
 * Wraps the handler. If it throws, logs that and answers 451. Gives a message's memory back after the answer; if the
 * handler threw, it may still be reading, so the garbage collector frees the memory. Counts failed logins.
 */
export function guardedHandler(
  { handler, log }: { handler: MailHandler; log: Log },
  memory: MessageMemory,
  failedLogins?: FailedLogins,
): Required<MailHandler> {
  const guarded = async <Answer>(envelope: Envelope, ask: () => Promise<Answer>) => {
    try {
      return await ask();
    } catch (error) {
      log.error("the mail handler failed", {
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
    login: (credentials, envelope) =>
      guarded(envelope, async () => {
        const { ip } = envelope;
        if (handler.login === undefined) return REPLIES.wrongLogin;
        if (failedLogins?.blocks(ip) === true) return REPLIES.tooManyLogins;
        const verdict = await handler.login(credentials, envelope);
        if ("code" in verdict && verdict.code === REPLIES.wrongLogin.code) {
          failedLogins?.count(ip);
          log.info("a login failed", { ip });
        }
        return verdict;
      }),
    stopping: () => handler.stopping?.(),
  };
}
