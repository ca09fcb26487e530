import { post } from "../../api/client.ts";
import type { MessageSummary } from "../../api/types.ts";
import type { Bulk } from "../../components/picks.tsx";
import { draftOf, itemOf } from "../../state/draft.ts";
import { can } from "../../state/session.ts";

/** The actions on selected messages. */
export function messageBulk(): Bulk<MessageSummary> {
  return {
    nameOf: ({ subject, to }) => `${subject} to ${to.join(", ")}`,
    actions: can("emails:send")
      ? [
          {
            verb: "Send again",
            done: "sent again",
            warning: "Each is sent to all of its recipients as a new message, now.",
            keep: "Do not send",
            refuses: ({ direction }) => (direction === "inbound" ? "It was received, not sent." : null),
            run: async (row, token) => {
              const item = itemOf(await draftOf(row));
              await post("/v1/emails", item, { idempotencyKey: `ui-again-${token}` });
            },
          },
        ]
      : [],
    file: "messages",
    columns: {
      id: ({ id }) => id,
      created: ({ createdAt }) => createdAt,
      direction: ({ direction }) => direction,
      status: ({ status }) => status,
      from: ({ from }) => from,
      to: ({ to }) => to.join(", "),
      subject: ({ subject }) => subject,
    },
  };
}
