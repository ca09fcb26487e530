import { patch } from "../../api/client.ts";
import type { Thread } from "../../api/types.ts";
import type { Bulk } from "../../components/picks.tsx";
import { can } from "../../state/session.ts";
import { readChanges } from "../../state/unread.ts";

/** The actions on selected threads of a view. */
export function threadBulk(view: string): Bulk<Thread> {
  const archived = view !== "archived";
  return {
    nameOf: ({ subject, participants }) => `${subject} with ${participants[0] ?? ""}`,
    actions: can("threads:reply")
      ? [
          {
            verb: archived ? "Archive" : "Bring back",
            done: archived ? "archived" : "brought back",
            leaves: true,
            run: async ({ id }) => {
              await patch(`/v1/threads/${encodeURIComponent(id)}`, { archived });
              readChanges.value++;
            },
          },
        ]
      : [],
    file: "threads",
    columns: {
      id: ({ id }) => id,
      subject: ({ subject }) => subject,
      participants: ({ participants }) => participants.join(", "),
      messages: ({ messageCount }) => String(messageCount),
      last: ({ lastMessageAt }) => lastMessageAt,
    },
  };
}
