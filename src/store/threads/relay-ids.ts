import { type Guard, type Statement, textsByGuard } from "../engine/client.ts";
import { MAX_THREAD_REFERENCES } from "./threads.ts";

/**
 * Returns the statement that remembers another Message-ID of a message of ours, which a relay has given it. Answers that name
 * it then join the message's thread. It changes nothing if the message has none.
 */
export function rememberRelayId(messageId: string, rfcMessageId: string, guard: Guard): Statement {
  return { sql: rememberRelayText(guard), args: [rfcMessageId, messageId, ...guard.args] };
}

const rememberRelayText = textsByGuard(
  (condition) => `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
    SELECT m.inbox_id, ?, m.sender_id, m.thread_id FROM messages m
      WHERE m.id = ? AND m.inbox_id IS NOT NULL AND m.thread_id IS NOT NULL
        AND (SELECT count(*) FROM (SELECT 1 FROM thread_references r WHERE r.thread_id = m.thread_id
          LIMIT ${MAX_THREAD_REFERENCES})) < ${MAX_THREAD_REFERENCES} AND ${condition}
    ON CONFLICT DO NOTHING`,
);
