import type { App } from "../../app.ts";
import type { Config } from "../../config.ts";
import { hostPort } from "../../core/networks.ts";
import type { FirstStart } from "../../flows/account/bootstrap.ts";
import { startUrl } from "../../flows/account/start-link.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import { FORM } from "./form.ts";

/** Returns the text that a start prints: the addresses and, at the first start, the keys and a first send. */
export function bannerText(config: Config, app: Pick<App, "ports" | "firstStart" | "startToken">): string {
  const lines = ["Postrider is running."];
  const url = serviceUrl(config, app.ports.http);
  if (config.roles.has("api")) lines.push(`  API        ${url}`, `  reference  ${url}/docs`);
  else lines.push(`  health     ${hostPort(config.host, app.ports.http)}/readyz`);
  if (app.ports.tls !== null) lines.push(`  API (TLS)  ${hostPort(config.host, app.ports.tls)}`);
  if (app.ports.smtp !== null) lines.push(`  SMTP       ${hostPort(config.smtpHost, app.ports.smtp)}`);
  for (const [name, port] of [
    ["submission", app.ports.submission],
    ["submissions", app.ports.submissions],
  ] as const)
    if (port !== null) lines.push(`  ${name.padEnd(10)} ${hostPort(config.submissionHost, port)}`);
  lines.push(`  delivery   ${DELIVERY_TEXT[config.delivery]}`);
  if (config.roles.has("api")) lines.push("", openText(app, url));
  if (app.firstStart !== null) lines.push(...firstStartLines(config, app.firstStart, url));
  return lines.join("\n");
}

/** Returns PUBLIC_URL or, if it is not set, localhost with the actual port, which PORT=0 does not tell. */
export function serviceUrl({ sources, publicUrl }: Config, port: number): string {
  return sources.has("PUBLIC_URL") ? publicUrl : `http://localhost:${port}`;
}

/**
 * Returns how to open the dashboard. The first link signs in with the account-wide key. It is not printed if the keys are
 * kept in a file, because then other people may read the output.
 */
function openText({ firstStart, startToken }: Pick<App, "firstStart" | "startToken">, url: string): string {
  if (startToken === null || (firstStart !== null && firstStart.keptIn !== null))
    return `\`${FORM.name} open\` prints a link that signs a browser in.`;
  return `Open ${startUrl(url, startToken)}`;
}

const DELIVERY_TEXT: Readonly<Record<Config["delivery"], string>> = {
  capture: "capture: mail is composed, signed and stored; no mail leaves this machine",
  relay: "relay: all mail goes to the smarthost",
  mx: "mx: straight to the recipients' mail servers",
};

/** Returns the text with the keys of a first start, which are shown once, even if the start then failed. */
export function secretsText({ accountKey, projectKey, keptIn }: FirstStart): string {
  if (keptIn !== null) return `First start. The account-wide key and the project key are in ${keptIn}`;
  return [
    "First start. These secrets are shown this once:",
    `  account-wide key  ${accountKey}`,
    `  project key       ${projectKey}`,
  ].join("\n");
}

function firstStartLines(config: Config, keys: FirstStart, url: string): string[] {
  const lines = ["", secretsText(keys)];
  // A process without the role api takes no requests.
  if (config.roles.has("api"))
    lines.push(
      "",
      "Send a first message, which needs no domain and no DNS:",
      "",
      firstSend(config, keys.keptIn === null ? keys.projectKey : "<project key>", url),
    );
  return lines;
}

/** Returns a first send, from the onboarding domain to the owner. It needs no domain and no DNS. */
function firstSend(config: Config, key: string, url: string): string {
  const message = {
    from: `Postrider <hello@${onboardingDomain(config.serviceDomain)}>`,
    to: config.ownerEmail,
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

/** Quotes a string for the shell. An address may hold an apostrophe. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
