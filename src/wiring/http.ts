// This import puts the script into the compiled binary. The package does not export it, so it is named by its path.
import docsScript from "../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with {
  type: "file",
};
import { dependencies } from "../../package.json";
import type { Config } from "../config.ts";
import type { DkimAlgorithm } from "../core/dkim-keys.ts";
import { SETTINGS } from "../config/settings.ts";
import { settingText, shownSettings } from "../config/shown.ts";
import { cachedHealth, HEALTH_FRESH_MS } from "../flows/health/check.ts";
import type { Streams } from "../flows/live/streams.ts";
import { newestEvent } from "../flows/live/watch.ts";
import type { Waits } from "../flows/live/waits.ts";
import { SharedPayloads } from "../flows/webhooks/shared-payloads.ts";
import type { Renderer } from "../flows/mime/rendering-tasks.ts";
import { captureDomains } from "../flows/domains/capture-domain.ts";
import type { FindZoneServers } from "../flows/domains/diagnose.ts";
import type { DomainLookups } from "../flows/records/lookups.ts";
import { draftRoutes } from "../http/dashboard/drafts.ts";
import { sessionRoutes } from "../http/dashboard/session.ts";
import { logAnswer } from "../http/pipeline/request-log.ts";
import { servesAtDomainHosts } from "../http/routing/domain-hosts.ts";
import type { ReadyCheck } from "../http/server/health.ts";
import { cacheFor } from "../core/time/clock.ts";
import { certificateStates } from "../flows/certificates/states.ts";
import { hostsDomains } from "../flows/certificates/domain-hosts.ts";
import { policiesByHost } from "../flows/certificates/policies-by-host.ts";
import { accountRoutes } from "../http/routes/projects/account.ts";
import { apiKeyRoutes } from "../http/routes/projects/api-keys.ts";
import { contactRoutes } from "../http/routes/contacts.ts";
import { domainRecordRoutes } from "../http/routes/domain-records.ts";
import { domainRoutes } from "../http/routes/domains.ts";
import { emailRoutes } from "../http/routes/emails/emails.ts";
import { eventStreamRoute } from "../http/routes/event-stream.ts";
import { laneRoutes } from "../http/routes/projects/lanes.ts";
import { healthRoutes } from "../http/routes/projects/health.ts";
import { homeRoutes } from "../http/routes/projects/home.ts";
import { inboundRoutes } from "../http/routes/emails/inbound.ts";
import { inboxRoutes } from "../http/routes/emails/inboxes.ts";
import { mtaStsRoutes } from "../http/routes/mta-sts.ts";
import { quotaRoutes } from "../http/routes/projects/quota.ts";
import { resendRoutes } from "../http/resend/routes.ts";
import { createDownloads } from "../http/pipeline/download.ts";
import { settingRoutes } from "../http/routes/projects/settings.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import { outRouteRoutes } from "../http/routes/projects/out-routes.ts";
import { senderRoutes } from "../http/routes/projects/senders.ts";
import { statsRoutes } from "../http/routes/projects/stats.ts";
import { suppressionRoutes } from "../http/routes/suppressions.ts";
import { templateRoutes } from "../http/routes/templates.ts";
import { threadRoutes } from "../http/routes/emails/threads.ts";
import { trackingRoutes } from "../http/routes/emails/tracking.ts";
import { unsubscribeRoutes } from "../http/routes/emails/unsubscribe.ts";
import { webhookDeliveryRoutes } from "../http/routes/webhook-deliveries.ts";
import { webhookRoutes } from "../http/routes/webhooks.ts";
import type { ProtectedMetrics } from "../http/server/metrics.ts";
import type { KeyLimiter, RateLimiter, SignInLimiter } from "../http/access/rate.ts";
import type { Route } from "../http/routing/route.ts";
import type { HttpDeps } from "../http/server/server.ts";
import { generateDkimKey } from "../mail/auth/dkim.ts";
import { resolveAddress, resolveCname, resolveMx, resolveNs, resolveTxt } from "../net/dns/lookups.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import { findZoneServers, resolveDelegation, type ZoneServerDeps } from "../net/dns/zone-servers.ts";
import { METRICS_CONTENT_TYPE } from "../metrics.ts";
import { ping } from "../store/engine/client.ts";
import type { ObjectReader } from "../store/contents/content-read.ts";
import { DOC_PAGES } from "./doc-pages.ts";
import { capturesAnyFrom, laneLimits, mxName } from "./delivery.ts";
import { programName } from "./process/program-name.ts";
import type { Services } from "./services.ts";
import { localChecks } from "./health.ts";
import { openScrape } from "./observe/scrape.ts";
import { webhookGuard } from "./process/own-addresses.ts";
import { uiDraw, uiFiles } from "./ui/files.ts";

/** The parts of the HTTP server. */
export interface HttpParts
  extends Pick<
    Services,
    | "config"
    | "clock"
    | "db"
    | "queue"
    | "keys"
    | "makeRsaKey"
    | "resolver"
    | "inspect"
    | "links"
    | "memory"
    | "metrics"
    | "space"
  > {
  renderer: Renderer;
  limiter: RateLimiter | null;
  /** Counts the DKIM keys that a project makes. Null: there is no limit. */
  keyLimiter: KeyLimiter | null;
  /** Counts the sign-in attempts from an address. Null: they are not limited. */
  signIns: SignInLimiter | null;
  streams: Streams;
  waits: Waits;
  /** Reads contents in the object store; null if there is none. */
  objects: ObjectReader | null;
  /** Returns true if the SMTP listener of this process listens, or the process has none. */
  listening: () => boolean;
  /** Open SMTP connections. */
  connections: () => { in: number; out: number };
}

/** Returns the dependencies of registering and verifying domains. */
export function domainDeps({ config, clock, db, keys, makeRsaKey, resolver }: HttpParts) {
  const { serviceDomain, domainRecheckSeconds: recheckSeconds } = config;
  return {
    db,
    clock,
    boxKey: keys.box,
    generateDkimKey: (algorithm: DkimAlgorithm) => generateDkimKey(algorithm, makeRsaKey),
    lookups: domainLookups({ config, clock, resolver }),
    findZoneServers: zoneServers({ config, clock, resolver }),
    serviceDomain,
    publicIps: config.publicIps,
    secondaryNames: config.dnsSecondaryNames,
    recheckSeconds,
    isCaptureDomain: captureDomains(config),
    capturesAnyFrom: capturesAnyFrom(config),
    hostsDomains: hostsDomains(config),
  };
}

/** Port of the name servers of a zone (RFC 1035 §4.2). */
const NAME_SERVER_PORT = 53;

type LookupParts = Pick<HttpParts, "config" | "clock" | "resolver">;

function zoneServerDeps({ config, clock, resolver }: LookupParts): ZoneServerDeps {
  const guard = webhookGuard(config, clock);
  const mayReach = (ip: string) => guard(ip, config.allowPrivateMx);
  return { clock, resolver, mayReach, port: NAME_SERVER_PORT };
}

/** Returns lookups at each name server of a domain's zone. */
function zoneServers(parts: LookupParts): FindZoneServers {
  const deps = zoneServerDeps(parts);
  return async (domain) => {
    const servers = await findZoneServers(deps, domain);
    return servers.map(({ name, resolver: only }) => ({ name, lookups: freshLookups(only) }));
  };
}

/** Makes the lookups of a domain's check. The delegation is looked up in the zone above. */
export function domainLookups(parts: LookupParts): DomainLookups {
  const deps = zoneServerDeps(parts);
  return { ...freshLookups(parts.resolver), ns: (name) => resolveDelegation(deps, name) };
}

/** Makes lookups that use no cache, so that a check sees a record that was published a second ago. */
function freshLookups(resolver: Resolver): DomainLookups {
  const fresh = { fresh: true };
  return {
    cname: (name) => resolveCname(resolver, name, fresh),
    txt: (name) => resolveTxt(resolver, name, fresh),
    mx: (name) => resolveMx(resolver, name, fresh),
    ns: (name) => resolveNs(resolver, name, fresh),
    a: (name) => resolveAddress(resolver, name, "A", fresh),
    aaaa: (name) => resolveAddress(resolver, name, "AAAA", fresh),
  };
}

/** Returns the checks of `/readyz`. */
function readyChecks({ config, db, queue, listening }: HttpParts): ReadyCheck[] {
  const redis = { name: "redis", spare: true, run: () => queue.check() };
  return [
    { name: "database", run: () => ping(db) },
    ...(config.redisUrl === null ? [] : [redis]),
    {
      name: "listener",
      run: async () => failUnless(listening(), "the SMTP listener is not listening"),
    },
  ];
}

/** Makes the dependencies of the HTTP server: health and metrics in every process, and the API if it has that role. */
export function httpDeps(parts: HttpParts): HttpDeps & { metrics: ProtectedMetrics } {
  const { config, clock, db, keys, metrics } = parts;
  const { publicUrl, delivery } = config;
  const checks = readyChecks(parts);
  const isApi = config.roles.has("api");
  return {
    db,
    clock,
    config,
    cursorKey: keys.cursor,
    boxKey: keys.box,
    sessionKey: keys.session,
    limiter: parts.limiter,
    keyLimiter: parts.keyLimiter,
    quotas: config.quotas,
    space: parts.space,
    checks,
    docs: {
      script: Bun.file(docsScript),
      version: dependencies["@scalar/api-reference"],
      pages: DOC_PAGES,
    },
    onAnswer(answered) {
      metrics.answered(answered);
      logAnswer(answered);
    },
    metrics: {
      token: config.metricsToken,
      contentType: METRICS_CONTENT_TYPE,
      read: openScrape({ ...parts, checks, lanes: laneLimits(config) }),
    },
    ui: isApi
      ? {
          files: uiFiles(),
          draw: uiDraw(),
          newestEvent: (senderId) => newestEvent({ db, clock }, senderId),
          routes: dashboardRoutes(parts),
          program: programName(),
        }
      : null,
    ...(hostsDomains(config) ? { servesAt: servesAtDomainHosts(config) } : {}),
    wellKnown: isApi ? mtaStsRoutes({ policyAt: policiesByHost({ db, clock }, config) }) : [],
    routes: isApi ? [...homeRoutes({ publicUrl, delivery }), ...apiRoutes(parts)] : [],
  };
}

/** Returns the routes that only the dashboard uses. */
function dashboardRoutes({ db, config, keys, signIns }: HttpParts): Route[] {
  return [...sessionRoutes({ db, config, sessionKey: keys.session, signIns }), ...draftRoutes()];
}

/** Returns all routes of the API. */
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
    quotas: config.quotas,
    waits: parts.waits,
    captures: config.delivery === "capture",
    capturesAnyFrom: capturesAnyFrom(config),
    ...links,
  };
  const sending = { ...common, limits: config, volume: config, inspect, handOut: createDownloads(clock) };
  const urlRules = { mayReach: webhookGuard(config, clock), allowPrivate: config.allowPrivateWebhooks };
  const webhooks = { db, boxKey: keys.box, urlRules };
  const routes = [
    ...emailRoutes(sending),
    eventStreamRoute({ db, clock, streams: parts.streams }),
    ...threadRoutes(sending),
    ...inboundRoutes({ ...sending, hostname: mxName(config) }),
    ...apiKeyRoutes({ db, quotas: config.quotas }),
    ...healthRoutes({
      health: cachedHealth(clock, localChecks({ config, clock, db: () => db })),
      certificates: cacheFor(clock, HEALTH_FRESH_MS, () => certificateStates(db, config, clock.now())),
    }),
    ...laneRoutes({ db, clock, ...laneLimits(config) }),
    ...settingRoutes({ settings: settingsOf(config) }),
    ...accountRoutes({ db, config }),
    ...senderRoutes({ db, config }),
    ...outRouteRoutes({ db, boxKey: keys.box, egress: config.egress, readRelayUrl: parseSmarthost }),
    ...domainRoutes(domainDeps(parts)),
    ...domainRecordRoutes(parts),
    ...inboxRoutes(domainDeps(parts)),
    ...templateRoutes({ db, renderer }),
    ...contactRoutes({ db }),
    ...suppressionRoutes({ db, quotas: config.quotas }),
    ...statsRoutes({ db }),
    ...quotaRoutes({ db, volume: config, quotas: config.quotas }),
    ...webhookRoutes(webhooks),
    ...webhookDeliveryRoutes({ ...common, payloads: new SharedPayloads() }),
    ...unsubscribeRoutes({ db, clock, queue, ...links }),
    ...trackingRoutes({ db, clock, queue, ...links }),
  ];
  return [...routes, ...resendRoutes(routes, { ...sending, ...webhooks })];
}

/** Returns the settings in effect as the API shows them. */
function settingsOf(config: Config) {
  return shownSettings(SETTINGS, config).map(({ name, value, source, secret, set, help }) => {
    return { name, value: settingText(value), source, secret, set, help };
  });
}

function failUnless(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}
