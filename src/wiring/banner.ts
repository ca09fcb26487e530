import type { App } from "../app.ts";
import type { Config } from "../config.ts";
import { hostPort } from "../core/host-port.ts";
import type { FirstStart } from "../flows/bootstrap.ts";
import { onboardingDomain } from "../flows/own-names.ts";

/** What a start prints: where the service listens, and at the first start the keys and a first send, once. */
export function bannerText(config: Config, app: Pick<App, "ports" | "firstStart">): string {
  const lines = ["Postrider is running."];
  const url = urlOf(config, app);
  if (config.roles.has("api")) lines.push(`  API        ${url}`, `  reference  ${url}/docs`);
  else lines.push(`  health     ${hostPort(config.host, app.ports.http)}/readyz`);
  if (app.ports.smtp !== null) lines.push(`  SMTP       ${hostPort(config.smtpHost, app.ports.smtp)}`);
  lines.push(`  delivery   ${DELIVERY_TEXT[config.delivery]}`);
  if (app.firstStart !== null) lines.push(...firstStartLines(config, app.firstStart, url));
  return lines.join("\n");
}

/** PUBLIC_URL, or this machine's name for the port that was taken: with PORT=0 the settings do not know it. */
function urlOf({ sources, publicUrl }: Config, { ports }: Pick<App, "ports">): string {
  return sources.has("PUBLIC_URL") ? publicUrl : `http://localhost:${ports.http}`;
}

const DELIVERY_TEXT: Readonly<Record<Config["delivery"], string>> = {
  capture: "capture: mail is composed, signed and stored; no mail leaves this machine",
  relay: "relay: all mail goes to the smarthost",
  mx: "mx: straight to the recipients' mail servers",
};

/** The keys of a first start, as they are shown once, be it that nothing else came of it. */
export function secretsText({ accountKey, projectKey }: FirstStart): string {
  return [
    "First start. These secrets are shown this once:",
    `  account-wide key  ${accountKey}`,
    `  project key       ${projectKey}`,
  ].join("\n");
}

function firstStartLines(config: Config, keys: FirstStart, url: string): string[] {
  const lines = ["", secretsText(keys)];
  // Of processes that share the roles any may be the first: this one takes no requests.
  if (config.roles.has("api"))
    lines.push("", "Send a first message:", "", firstSend(config, keys.projectKey, url));
  return lines;
}

/** From the shared onboarding domain to the owner: it needs no domain and no DNS. */
function firstSend(config: Config, key: string, url: string): string {
  const message = {
    from: { email: `hello@${onboardingDomain(config.serviceDomain)}`, name: "Postrider" },
    to: [{ email: config.ownerEmail }],
    subject: "Hello from Postrider",
    text: "It works.",
  };
  return [
    `curl -s ${url}/v1/emails \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${shellWord(JSON.stringify(message))}`,
  ].join("\n");
}

/** The text as one word of the shell: an address may hold an apostrophe. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
