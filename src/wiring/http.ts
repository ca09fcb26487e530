// The page's files go into a compiled binary by these imports.
import docsScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import docsStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import type { Inspect } from "../flows/readings.ts";
import type { DomainLookups } from "../flows/verify/lookups.ts";
import { apiKeyRoutes } from "../http/routes/api-keys.ts";
import { contactRoutes } from "../http/routes/contacts.ts";
import { domainRoutes } from "../http/routes/domains.ts";
import { emailRoutes } from "../http/routes/emails.ts";
import { inboundRoutes } from "../http/routes/inbound.ts";
import { inboxRoutes } from "../http/routes/inboxes.ts";
import { senderRoutes } from "../http/routes/senders.ts";
import { suppressionRoutes } from "../http/routes/suppressions.ts";
import { templateRoutes } from "../http/routes/templates.ts";
import { threadRoutes } from "../http/routes/threads.ts";
import { trackingRoutes } from "../http/routes/tracking.ts";
import { unsubscribeRoutes } from "../http/routes/unsubscribe.ts";
import { webhookDeliveryRoutes } from "../http/routes/webhook-deliveries.ts";
import { webhookRoutes } from "../http/routes/webhooks.ts";
import type { RateLimiter } from "../http/rate.ts";
import type { HttpDeps } from "../http/server.ts";
import { generateDkimKey } from "../mail/dkim.ts";
import { isPublicAddress } from "../net/address-guard.ts";
import { resolveCname, resolveMx, resolveTxt } from "../net/lookups.ts";
import type { Resolver } from "../net/resolver.ts";
import type { Queue } from "../queue/port.ts";
import { type Db, ping } from "../store/client.ts";
import { mxName } from "./delivery.ts";
import type { InstallationKeys } from "./master-key.ts";

/** What the HTTP door is put together from. */
export interface HttpParts {
  config: Config;
  clock: Clock;
  db: Db;
  queue: Queue;
  keys: InstallationKeys;
  resolver: Resolver;
  /** Reads a mail that is let in by the API. */
  inspect: Inspect;
  limiter: RateLimiter | null;
  /** Whether the SMTP listener of this process listens, or is none of its business. */
  listening: () => boolean;
}

/** What domain verification needs, of registration and checks alike. */
export function domainDeps({ config, clock, db, keys, resolver }: HttpParts) {
  const { serviceDomain, domainRecheckSeconds: recheckSeconds } = config;
  return {
    db,
    clock,
    boxKey: keys.box,
    generateDkimKey,
    lookups: freshLookups(resolver),
    serviceDomain,
    recheckSeconds,
  };
}

/** A check asks the servers themselves: a record published a second ago must not hide behind a cached answer. */
function freshLookups(resolver: Resolver): DomainLookups {
  const fresh = { fresh: true };
  return {
    cname: (name) => resolveCname(resolver, name, fresh),
    txt: (name) => resolveTxt(resolver, name, fresh),
    mx: (name) => resolveMx(resolver, name, fresh),
  };
}

/** The dependencies of the HTTP door with every route of the API. */
export function httpDeps(parts: HttpParts): HttpDeps {
  const { config, clock, db, queue, keys } = parts;
  const { serviceDomain } = config;
  const { publicUrl } = config;
  const links = { publicUrl, unsubscribeKey: keys.unsubscribe, trackingKey: keys.tracking };
  const common = { db, clock, queue, serviceDomain, boxKey: keys.box, keys: new Map(), ...links };
  const sending = { ...common, limits: config, volume: config, inspect: parts.inspect };
  const urlRules = { isPublicAddress, allowPrivate: config.allowPrivateWebhooks };
  return {
    db,
    clock,
    config,
    cursorKey: keys.cursor,
    boxKey: keys.box,
    limiter: parts.limiter,
    checks: [
      { name: "database", run: () => ping(db) },
      { name: "queue", run: () => queue.check() },
      {
        name: "listener",
        run: async () => failUnless(parts.listening(), "the SMTP listener is not listening"),
      },
    ],
    docs: { script: Bun.file(docsScript), style: Bun.file(docsStyle) },
    onAnswer: null,
    routes: [
      ...emailRoutes(sending),
      ...threadRoutes(sending),
      ...inboundRoutes({ ...sending, hostname: mxName(config) }),
      ...apiKeyRoutes({ db }),
      ...senderRoutes({ db, config }),
      ...domainRoutes(domainDeps(parts)),
      ...inboxRoutes({ db }),
      ...templateRoutes({ db }),
      ...contactRoutes({ db }),
      ...suppressionRoutes({ db }),
      ...webhookRoutes({ db, boxKey: keys.box, urlRules }),
      ...webhookDeliveryRoutes({ db, clock, queue }),
      ...unsubscribeRoutes({ db, clock, ...links }),
      ...trackingRoutes({ db, clock, queue, ...links }),
    ],
  };
}

function failUnless(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}
