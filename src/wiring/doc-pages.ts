// These imports put the documentation's pages into the program.
import agents from "../../docs/agents.md" with { type: "text" };
import dashboard from "../../docs/dashboard.md" with { type: "text" };
import dns from "../../docs/dns.md" with { type: "text" };
import domains from "../../docs/domains.md" with { type: "text" };
import inbox from "../../docs/inbox.md" with { type: "text" };
import incidents from "../../docs/incidents.md" with { type: "text" };
import install from "../../docs/install.md" with { type: "text" };
import live from "../../docs/live.md" with { type: "text" };
import migrate from "../../docs/migrate.md" with { type: "text" };
import operate from "../../docs/operate.md" with { type: "text" };
import receive from "../../docs/receive.md" with { type: "text" };
import scale from "../../docs/scale.md" with { type: "text" };
import relays from "../../docs/relays.md" with { type: "text" };
import security from "../../docs/security.md" with { type: "text" };
import send from "../../docs/send.md" with { type: "text" };
import settings from "../../docs/settings.md" with { type: "text" };
import testMail from "../../docs/test-mail.md" with { type: "text" };
import troubleshoot from "../../docs/troubleshoot.md" with { type: "text" };
import webhooks from "../../docs/webhooks.md" with { type: "text" };
import sdk from "../../sdk/README.md" with { type: "text" };
import type { DocPage } from "../http/openapi/llms.ts";

/** The pages for users of the API and for operators, in the order in which they are listed. */
export const DOC_PAGES: readonly DocPage[] = [
  { name: "send", text: send },
  { name: "receive", text: receive },
  { name: "test-mail", text: testMail },
  { name: "webhooks", text: webhooks },
  { name: "live", text: live },
  { name: "domains", text: domains },
  { name: "inbox", text: inbox },
  { name: "dashboard", text: dashboard },
  { name: "agents", text: agents },
  { name: "sdk", text: sdk },
  { name: "migrate", text: migrate },
  { name: "install", text: install },
  { name: "dns", text: dns },
  { name: "operate", text: operate },
  { name: "incidents", text: incidents },
  { name: "scale", text: scale },
  { name: "relays", text: relays },
  { name: "security", text: security },
  { name: "settings", text: settings },
  { name: "troubleshoot", text: troubleshoot },
];
