import { get } from "../api/client.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { Domain, Page } from "../api/types.ts";
import type { CodeContext } from "../words/code.ts";
import { origin } from "./router.ts";
import { accountWide, can, me, project } from "./session.ts";

/** Returns the sender that works without any DNS. */
export function onboardingSender(): string {
  return `hello@onboarding.${me.value?.service.domain ?? ""}`;
}

/** Returns a first send, to a recipient that always answers. */
export function firstSend() {
  return {
    from: onboardingSender(),
    to: `delivered@simulator.${me.value?.service.domain ?? ""}`,
    subject: "Hello",
    text: "It works.",
  };
}

/** Returns the address of a first inbox. In capture mode the service has a domain for inboxes without any DNS. */
export function suggestedInbox(): string {
  const { delivery, domain } = me.value?.service ?? {};
  return delivery === "capture" ? `support@inbox.${domain}` : "support@mail.example.com";
}

/** Returns true if messages to these recipients are captured. Those to the simulator are not. */
export function capturesTo(to: readonly string[]): boolean {
  const { delivery, domain } = me.value?.service ?? {};
  return delivery === "capture" && !to.every((email) => email.endsWith(`@simulator.${domain}`));
}

/** Returns the name of a group of messages or events as this installation calls it: in capture mode, nothing is delivered. */
export function shownName(name: string): string {
  return name === "Delivered" && me.value?.service.delivery === "capture" ? "Captured" : name;
}

/** Returns the facts that commands and code for this project need. */
export function codeContext(): CodeContext {
  return {
    origin: origin.value,
    project: accountWide.value ? (project.value?.externalId ?? null) : null,
  };
}

/** Maximum number of domains that a form offers. */
const OFFERED_DOMAINS = 100;

/** Returns the project's domains for forms that offer them. */
export function useDomains(): Resource<Domain[]> {
  return useResource("domains for forms", async () => {
    if (!can("domains:read")) return [];
    return (await get<Page<Domain>>("/v1/domains", { limit: OFFERED_DOMAINS })).data;
  });
}
