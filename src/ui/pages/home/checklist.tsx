import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Domain, MessageSummary, Page } from "../../api/types.ts";
import { Code } from "../../controls/copy.tsx";
import { Icon } from "../../controls/icon.tsx";
import { Problem } from "../../controls/problem.tsx";
import { codeContext, firstSend, suggestedInbox } from "../../state/installation.ts";
import { accountWide, can, me, program, projectId } from "../../state/session.ts";
import { readChoice, storeChoice } from "../../state/storage.ts";
import { curlText } from "../../words/code.ts";
import { useWebhooks } from "./webhooks.tsx";

/** Minimum time between reloads of the steps while events arrive, ms. */
const REFRESH_MS = 1_500;

/** Which first steps are done, without those that other parts of the page read. */
interface Progress {
  send: boolean;
  receive: boolean;
  domain: boolean;
  real: boolean;
}

async function any(scope: string, path: string, query: Record<string, string> = {}): Promise<boolean> {
  if (!can(scope)) return false;
  return (await get<Page<unknown>>(path, { ...query, limit: 1 })).data.length > 0;
}

async function readProgress(): Promise<Progress> {
  const [send, receive, domain, real] = await Promise.all([
    any("emails:read", "/v1/emails", { direction: "outbound" }),
    any("emails:read", "/v1/emails", { direction: "inbound" }),
    hasVerifiedDomain(),
    hasRealDelivery(),
  ]);
  return { send, receive, domain, real };
}

/** Returns whether a domain of the project is verified. Those below the service's own name need no verifying. */
async function hasVerifiedDomain(): Promise<boolean> {
  if (!can("domains:read")) return false;
  const own = `.${me.value?.service.domain ?? ""}`;
  const { data } = await get<Page<Domain>>("/v1/domains", { limit: 100 });
  return data.some(({ status, domain }) => status === "verified" && !domain.endsWith(own));
}

/** Returns whether another mail server has taken a message. Captured and simulated ones name no such server. */
async function hasRealDelivery(): Promise<boolean> {
  if (!can("emails:read")) return false;
  const { data } = await get<Page<MessageSummary>>("/v1/emails", {
    status: "delivered",
    direction: "outbound",
    limit: 1,
  });
  const [newest] = data;
  if (newest === undefined) return false;
  const { recipients } = await get<{ recipients: { mx: string | null }[] }>(`/v1/emails/${newest.id}`);
  return recipients.some(({ mx }) => mx !== null && mx !== "capture" && mx !== "simulator");
}

interface Step {
  id: keyof Progress | "webhook";
  scope: string;
  title: string;
  why: string;
  button: string;
  /** The page on which the step is done; null if the key may not open it. */
  href: string | null;
  command: string;
}

function stepsOf(): Step[] {
  const context = codeContext();
  const captures = me.value?.service.delivery === "capture";
  return [
    {
      id: "send",
      scope: "emails:send",
      title: "Send a message",
      why: "The onboarding domain needs no DNS, and the simulator always answers.",
      button: "Compose",
      href: "/messages?compose=1",
      command: curlText("POST", "/v1/emails", firstSend(), context),
    },
    {
      id: "receive",
      scope: "inboxes:write",
      title: "Receive a message",
      why: "Make an inbox and simulate a message to it. It takes the same road as real mail.",
      button: "Open inboxes",
      href: "/inboxes?simulate=1",
      command: curlText(
        "POST",
        "/v1/inbound/simulate",
        { to: suggestedInbox(), from: "ana@example.net", subject: "Hi", text: "Hello" },
        context,
      ),
    },
    {
      id: "webhook",
      scope: "webhooks:write",
      title: "Get events pushed",
      why: "A webhook tells your program about each delivery, bounce and arriving message.",
      button: "Add a webhook",
      href: "/webhooks",
      command: curlText(
        "POST",
        "/v1/webhooks",
        { url: "https://example.com/webhooks", eventTypes: ["*"] },
        context,
      ),
    },
    {
      id: "domain",
      scope: "domains:write",
      title: "Verify a domain",
      why: "Mail from your own domain is signed with its key.",
      button: "Add a domain",
      href: "/domains",
      command: curlText("POST", "/v1/domains", { domain: "mail.example.com" }, context),
    },
    {
      id: "real",
      scope: "emails:send",
      title: "Deliver to a real mailbox",
      why: captures
        ? "This installation keeps all mail. Let it out with SERVICE_DOMAIN or SMTP_RELAY_URL."
        : "Send from your domain to your own address.",
      button: captures ? "See the settings" : "Compose",
      href: captures ? settingsLink() : "/messages?compose=1",
      command: `${program.value} doctor`,
    },
  ];
}

/** Returns the path of the settings, or null if the key may not read them. */
function settingsLink(): string | null {
  return accountWide.value && can("metrics:read") ? "/settings" : null;
}

/** The first steps, until they are done or hidden. */
export function Checklist() {
  const choice = `checklist.${projectId.value}`;
  const hidden = useSignal(readChoice(choice) === "hidden");
  if (hidden.value) return null;
  const hide = () => {
    hidden.value = true;
    storeChoice(choice, "hidden");
  };
  return <Steps onHide={hide} />;
}

/** The steps. Each ticks itself when it is done. */
function Steps({ onHide }: { onHide: () => void }) {
  const progress = useResource("first steps", readProgress);
  const webhooks = useWebhooks().value.value;
  const read = progress.value.value;
  const done = read === null || webhooks === null ? null : { ...read, webhook: webhooks.length > 0 };
  useLiveReload(progress.reload, REFRESH_MS, () => done === null || Object.values(done).includes(false));
  const steps = stepsOf().filter(({ scope }) => can(scope));
  const count = done === null ? 0 : steps.filter(({ id }) => done[id]).length;
  const isOver = done !== null && count === steps.length;
  // A later message to the simulator must not bring the last step back.
  useEffect(() => {
    if (isOver) onHide();
  }, [isOver]);
  if (done === null) return <Problem error={progress.error.value} onRetry={progress.reload} />;
  if (isOver) return null;
  const next = steps.find(({ id }) => !done[id])?.id;
  return (
    <section class="panel" aria-label="First steps">
      <header class="panel-head">
        <h2>
          First steps{" "}
          <span class="quiet">
            {count} of {steps.length}
          </span>
        </h2>
        <button type="button" class="button bare small" onClick={onHide}>
          Hide
        </button>
      </header>
      <ol class="steps">
        {steps.map((step) => (
          <StepRow key={step.id} step={step} done={done[step.id]} open={step.id === next} />
        ))}
      </ol>
    </section>
  );
}

function StepRow({ step, done, open }: { step: Step; done: boolean; open: boolean }) {
  return (
    <li class={done ? "step done" : "step"}>
      <details open={open && !done}>
        <summary>
          <span class="tick" aria-hidden="true">
            {done ? <Icon name="check" /> : null}
          </span>
          <span class="step-title">{step.title}</span>
          <span class="hidden">{done ? "Done" : "To do"}</span>
        </summary>
        <div class="step-body">
          <p>{step.why}</p>
          {step.href === null ? null : (
            <p>
              <a class="button small" href={step.href}>
                {step.button}
              </a>
            </p>
          )}
          <Code text={step.command} what="command" />
        </div>
      </details>
    </li>
  );
}
