// The page's files go into a compiled binary by these imports.
import docsScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import docsStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import { cachedHealth } from "../flows/health/cached.ts";
import type { Renderer } from "../flows/renderings.ts";
import type { DomainLookups } from "../flows/verify/lookups.ts";
import { logAnswer } from "../http/access-log.ts";
import type { ReadyCheck } from "../http/health.ts";
import { apiKeyRoutes } from "../http/routes/api-keys.ts";
import { contactRoutes } from "../http/routes/contacts.ts";
import { domainRoutes } from "../http/routes/domains.ts";
import { emailRoutes } from "../http/routes/emails.ts";
import { healthRoutes } from "../http/routes/health.ts";
import { inboundRoutes } from "../http/routes/inbound.ts";
import { inboxRoutes } from "../http/routes/inboxes.ts";
import { quotaRoutes } from "../http/routes/quota.ts";
import { senderRoutes } from "../http/routes/senders.ts";
import { statsRoutes } from "../http/routes/stats.ts";
import { suppressionRoutes } from "../http/routes/suppressions.ts";
import { templateRoutes } from "../http/routes/templates.ts";
import { threadRoutes } from "../http/routes/threads.ts";
import { trackingRoutes } from "../http/routes/tracking.ts";
import { unsubscribeRoutes } from "../http/routes/unsubscribe.ts";
import { webhookDeliveryRoutes } from "../http/routes/webhook-deliveries.ts";
import { webhookRoutes } from "../http/routes/webhooks.ts";
import type { RateLimiter } from "../http/rate.ts";
import type { Route } from "../http/route.ts";
import type { HttpDeps } from "../http/server.ts";
import { generateDkimKey } from "../mail/dkim.ts";
import { isPublicAddress } from "../net/address-guard.ts";
import { resolveCname, resolveMx, resolveTxt } from "../net/dns/lookups.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import { METRICS_CONTENT_TYPE } from "../metrics.ts";
import { ping } from "../store/engine/client.ts";
import type { ObjectReader } from "../store/contents/content-read.ts";
import { mxName } from "./delivery.ts";
import type { Ground } from "./ground.ts";
import { nearChecks } from "./health.ts";
import { openScrape } from "./scrape.ts";

/** What the HTTP door is put together from. */
export interface HttpParts
  extends Pick<
    Ground,
    "config" | "clock" | "db" | "queue" | "keys" | "resolver" | "inspect" | "links" | "memory" | "metrics"
  > {
  renderer: Renderer;
  limiter: RateLimiter | null;
  /** Where contents are that have left the database. */
  objects: ObjectReader | null;
  /** Whether the SMTP listener of this process listens, or is none of its business. */
  listening: () => boolean;
  /** Open SMTP connections. */
  connections: () => { in: number; out: number };
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
export function freshLookups(resolver: Resolver): DomainLookups {
  const fresh = { fresh: true };
  return {
    cname: (name) => resolveCname(resolver, name, fresh),
    txt: (name) => resolveTxt(resolver, name, fresh),
    mx: (name) => resolveMx(resolver, name, fresh),
  };
}

/** What `/readyz` asks. */
function readyChecks({ db, queue, listening }: HttpParts): ReadyCheck[] {
  return [
    { name: "database", run: () => ping(db) },
    { name: "queue", run: () => queue.check() },
    {
      name: "listener",
      run: async () => failUnless(listening(), "the SMTP listener is not listening"),
    },
  ];
}

/** The dependencies of the HTTP door: health and metrics in every process, the API where that is one of its roles. */
export function httpDeps(parts: HttpParts): HttpDeps {
  const { config, clock, db, keys, metrics } = parts;
  const checks = readyChecks(parts);
  return {
    db,
    clock,
    config,
    cursorKey: keys.cursor,
    boxKey: keys.box,
    limiter: parts.limiter,
    checks,
    docs: { script: Bun.file(docsScript), style: Bun.file(docsStyle) },
    onAnswer(answered) {
      metrics.answered(answered);
      logAnswer(answered);
    },
    metrics: {
      token: config.metricsToken,
      contentType: METRICS_CONTENT_TYPE,
      read: openScrape({ ...parts, checks }),
    },
    routes: config.roles.has("api") ? apiRoutes(parts) : [],
  };
}

/** Every route of the API. */
function apiRoutes(parts: HttpParts): Route[] {
  const { config, clock, db, queue, keys, objects, inspect, renderer, memory, links } = parts;
  const common = {
    db,
    clock,
    queue,
    objects,
    renderer,
    boxKey: keys.box,
    memory,
    ...links,
  };
  const sending = { ...common, limits: config, volume: config, inspect };
  const urlRules = { isPublicAddress, allowPrivate: config.allowPrivateWebhooks };
  return [
    ...emailRoutes(sending),
    ...threadRoutes(sending),
    ...inboundRoutes({ ...sending, hostname: mxName(config) }),
    ...apiKeyRoutes({ db }),
    ...healthRoutes({ health: cachedHealth(clock, nearChecks({ config, clock, db: () => db })) }),
    ...senderRoutes({ db, config }),
    ...domainRoutes(domainDeps(parts)),
    ...inboxRoutes({ db }),
    ...templateRoutes({ db, renderer }),
    ...contactRoutes({ db }),
    ...suppressionRoutes({ db }),
    ...statsRoutes({ db }),
    ...quotaRoutes({ db, volume: config }),
    ...webhookRoutes({ db, boxKey: keys.box, urlRules }),
    ...webhookDeliveryRoutes({ db, clock, queue }),
    ...unsubscribeRoutes({ db, clock, ...links }),
    ...trackingRoutes({ db, clock, queue, ...links }),
  ];
}

function failUnless(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}
