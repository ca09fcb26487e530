import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { DeliveryMode } from "../../config/settings.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type Answer, ok, raw } from "../answer.ts";
import { type ReadyCheck, runChecks } from "../health.ts";
import { openRoute, type Route } from "../route.ts";

const Home = Type.Object(
  {
    name: Type.Literal("Postrider"),
    delivery: Type.String({ description: "How outgoing mail leaves: `capture`, `relay` or `mx`." }),
    reference: Type.String({ description: "URL of the reference." }),
    openapi: Type.String({ description: "URL of the OpenAPI document." }),
    ready: Type.String({ description: "URL that tells whether the service can work." }),
  },
  { title: "Home" },
);

export interface HomeDeps {
  clock: Clock;
  checks: readonly ReadyCheck[];
  publicUrl: string;
  delivery: DeliveryMode;
  serviceDomain: string;
}

const DELIVERY_TEXT: Readonly<Record<DeliveryMode, string>> = {
  capture: "Messages are composed, signed and stored. No mail leaves this machine.",
  relay: "Messages leave through the smarthost.",
  mx: "Messages are delivered to the recipients' mail servers.",
};

const STYLE = `:root{color-scheme:light dark;font:15px/1.45 system-ui,sans-serif}
body{max-width:44rem;margin:3rem auto;padding:0 1rem}
pre{padding:.75rem;border:1px solid #8884;border-radius:6px;overflow:auto}
dt{font-weight:600}dd{margin:0 0 .5rem}`;

/** `/`: a small page for browsers, and JSON for other clients. */
export function homeRoutes(deps: HomeDeps): Route[] {
  const policy = `default-src 'none'; style-src 'sha256-${sha256(STYLE)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return [
    openRoute({
      method: "GET",
      path: "/",
      operationId: "getHome",
      summary: "Show what runs here and where to go next",
      description: "A browser gets a page.",
      answers: { 200: Home },
      async handle({ request }) {
        if (!wantsPage(request.headers)) return home(deps);
        return raw(await page(deps), "text/html; charset=utf-8", { "content-security-policy": policy });
      },
    }),
  ];
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

function wantsPage(headers: Headers): boolean {
  return /\btext\/html\b/i.test(headers.get("accept") ?? "");
}

function home({ publicUrl, delivery }: HomeDeps): Answer {
  return ok({
    name: "Postrider",
    delivery,
    reference: `${publicUrl}/docs`,
    openapi: `${publicUrl}/docs/json`,
    ready: `${publicUrl}/readyz`,
  });
}

async function page(deps: HomeDeps): Promise<string> {
  const { clock, checks, delivery } = deps;
  const outcomes = Object.entries(await runChecks(clock, checks));
  const failed = outcomes.filter(([, outcome]) => outcome !== "ok").map(([name]) => name);
  const status = failed.length === 0 ? "It is ready." : `It is not ready: ${failed.join(", ")} failed.`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Postrider</title>
<style>${STYLE}</style></head>
<body><h1>Postrider is running</h1>
<p>${escaped(status)} ${DELIVERY_TEXT[delivery]}</p>
<h2>Send a first message</h2>
<p>The first start printed a project key. Put it into <code>KEY</code>:</p>
<pre><code>${escaped(firstSend(deps))}</code></pre>
<h2>Then</h2>
<dl>
<dt><a href="docs">Reference</a></dt><dd>Every operation with its fields, answers and errors.</dd>
<dt><a href="docs/json">OpenAPI document</a></dt><dd>For generating a client.</dd>
<dt><a href="readyz">Readiness</a></dt><dd>What the service needs, and whether it is there.</dd>
</dl>
</body>
</html>
`;
}

/** Returns a send from the onboarding domain to a simulated recipient: it needs no domain and no DNS. */
function firstSend({ publicUrl, serviceDomain }: HomeDeps): string {
  const item = {
    from: { email: `hello@onboarding.${serviceDomain}` },
    to: [{ email: `delivered@simulator.${serviceDomain}` }],
    subject: "Hello from Postrider",
    text: "It works.",
  };
  return `curl ${publicUrl}/v1/emails -H "Authorization: Bearer $KEY" --json '${JSON.stringify(item)}'`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
