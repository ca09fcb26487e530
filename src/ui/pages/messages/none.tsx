import { EmptyState } from "../../components/empty.tsx";
import { useInstallation } from "../../state/installation.ts";
import { urlWith } from "../../state/router.ts";
import { accountWide, project } from "../../state/session.ts";
import { curlText } from "../../words/code.ts";

/** The contents of an empty list of messages. */
export function NoMessages({ filtered }: { filtered: boolean }) {
  const installation = useInstallation();
  if (filtered)
    return (
      <EmptyState
        action={
          <a class="button" href="/messages">
            Show all messages
          </a>
        }
      >
        No message fits these filters.
      </EmptyState>
    );
  const domain = installation.value.value?.serviceDomain ?? "postrider.localhost";
  const item = {
    from: { email: `hello@onboarding.${domain}` },
    to: [{ email: `delivered@simulator.${domain}` }],
    subject: "Hello",
    text: "It works.",
  };
  const context = {
    origin: window.location.origin,
    project: accountWide.value ? (project.value?.externalId ?? null) : null,
  };
  return (
    <EmptyState
      action={
        <a class="button primary" href={urlWith({ compose: "1" })}>
          Send a message
        </a>
      }
      command={curlText("POST", "/v1/emails", item, context)}
    >
      Messages that you send and receive appear here as they happen.
    </EmptyState>
  );
}
