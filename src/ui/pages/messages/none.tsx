import { EmptyState } from "../../components/empty.tsx";
import { codeContext, firstSend } from "../../state/installation.ts";
import { urlWith } from "../../state/router.ts";
import { curlText } from "../../words/code.ts";

/** The contents of an empty list of messages. */
export function NoMessages({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState
        action={
          <a class="button" href="/messages">
            Show all messages
          </a>
        }
      >
        No message fits this search and filter.
      </EmptyState>
    );
  return (
    <EmptyState
      action={
        <a class="button primary" href={urlWith({ compose: "1" })}>
          Send a message
        </a>
      }
      command={curlText("POST", "/v1/emails", firstSend(), codeContext())}
    >
      Messages that you send and receive appear here as they happen.
    </EmptyState>
  );
}
