// This import puts the script into the compiled binary. The package does not export it, so it is named by its path.
import docsScript from "../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with {
  type: "file",
};
import { resolve } from "node:path";
import { dependencies } from "../../package.json";
import type { Config } from "../config.ts";
import { SETTINGS } from "../config/settings.ts";
import { settingText, shownSettings } from "../config/shown.ts";
import { cachedHealth, DNS_FRESH_MS, HEALTH_FRESH_MS } from "../flows/health/check.ts";
import type { Streams } from "../flows/live/streams.ts";
import { newestEvent } from "../flows/live/watch.ts";
import { hasMembers } from "../store/projects/members.ts";
import type { Waits } from "../flows/live/waits.ts";
import { SharedPayloads } from "../flows/webhooks/shared-payloads.ts";
import { mailLinkTo } from "../flows/account/sign-in.ts";
import { apiRoutes } from "../http/api-routes.ts";
import type { Parts } from "../http/routing/parts.ts";
import type { Sending } from "../flows/accept/sending.ts";
import { captureDomains } from "../flows/domains/capture-domain.ts";
import type { DomainLookups } from "../flows/records/lookups.ts";
import { draftRoutes } from "../http/dashboard/drafts.ts";
import { topicPageRoutes } from "../http/dashboard/topic-page.ts";
import { noteRefused } from "../flows/account/refused-sign-ins.ts";
import { sessionRoutes } from "../http/dashboard/session.ts";
import { providerRoutes } from "../http/dashboard/provider.ts";
import { providerHost, providerOf } from "./provider.ts";
import { logAnswer } from "../http/pipeline/request-log.ts";
import { servesAtDomainHosts } from "../http/routing/domain-hosts.ts";
import type { ReadyCheck } from "../http/server/health.ts";
import { cacheFor } from "../core/time/clock.ts";
import { certificateStates } from "../flows/certificates/states.ts";
import { hostsDomains } from "../flows/certificates/domain-hosts.ts";
import { policiesByHost } from "../flows/certificates/policies-by-host.ts";
import { homeRoutes } from "../http/routes/projects/home.ts";
import { mtaStsRoutes } from "../http/routes/mta-sts.ts";
import { createDownloads } from "../http/pipeline/download.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import type { ProtectedMetrics } from "../http/server/metrics.ts";
import type { KeyLimiter, RateLimiter, SignInLimiter } from "../http/access/rate.ts";
import type { Route } from "../http/routing/route.ts";
import type { HttpDeps } from "../http/server/server.ts";
import { generateDkimKey } from "../mail/auth/dkim.ts";
import { resolveAddress, resolveCname, resolveMx, resolveNs, resolveTxt } from "../net/dns/lookups.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import { findZoneServers, resolveDelegation, type ZoneServerDeps } from "../net/dns/zone-servers.ts";
import { requestGuarded } from "../net/guarded-request.ts";
import type { GetDocument } from "../mail/relays/relay-events.ts";
import { METRICS_CONTENT_TYPE } from "../metrics.ts";
import { ping } from "../store/engine/client.ts";
import { DOC_PAGES } from "./doc-pages.ts";
import { laneLimits, mxName, type Outbound, waysFinder } from "./delivery.ts";
import { FORM } from "./process/form.ts";
import { receiverView } from "./observe/receiver-view.ts";
import { sdkSource } from "./sdk/served.ts";
import type { Services } from "./services.ts";
import { outsideChecks, localChecks } from "./health.ts";
import { openWaits } from "../flows/read/waits.ts";
import { openScrape } from "./observe/scrape.ts";
import { webhookGuard } from "./process/own-addresses.ts";
import { uiDraw, uiFiles } from "./ui/files.ts";
import type { Checking } from "../flows/domains/checking.ts";

/** The parts of the HTTP server. */
export interface HttpParts
  extends Sending,
    Pick<
      Services,
      | "config"
      | "keys"
      | "makeRsaKey"
      | "documentHosts"
      | "resolver"
      | "rightOfWay"
      | "metrics"
      | "space"
      | "testControls"
    > {
  limiter: RateLimiter | null;
  /** Counts the DKIM keys that a project makes. Null: there is no limit. */
  keyLimiter: KeyLimiter | null;
  /** Counts the sign-in attempts from an address. Null: they are not limited. */
  signIns: SignInLimiter | null;
  outbound: Outbound;
  streams: Streams;
  waits: Waits;
  /** Returns true if the SMTP listener of this process listens, or the process has none. */
  listening: () => boolean;
  /** Open SMTP connections. */
  connections: () => { in: number; out: number };
}

/** Returns the services that register, show and check domains. */
export function checkingOf(parts: HttpParts): Checking {
  const { config, makeRsaKey } = parts;
  return {
    ...parts,
    generateDkimKey: (algorithm) => generateDkimKey(algorithm, makeRsaKey),
    lookups: domainLookups(parts),
    findZoneServers: zoneServers(parts),
    publicIps: config.publicIps,
    secondaryNames: config.dnsSecondaryNames,
    recheckSeconds: config.domainRecheckSeconds,
    isCaptureDomain: captureDomains(config),
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
function zoneServers(parts: LookupParts): Checking["findZoneServers"] {
  const deps = zoneServerDeps(parts);
  return async (domain) => {
    const servers = await findZoneServers(deps, domain);
    return servers.map(({ name, resolver: only }) => ({ name, lookups: freshLookups(only) }));
  };
}

/** Makes the lookups of a domain's check. The zone above tells the delegation. */
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
  const health = cachedHealth(clock, localChecks({ config, clock, db: () => db }));
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
    rightOfWay: parts.rightOfWay,
    space: parts.space,
    checks,
    docs: {
      script: Bun.file(resolve(import.meta.dir, docsScript)),
      version: dependencies["@scalar/api-reference"],
      pages: DOC_PAGES,
      sdk: sdkSource(),
    },
    onAnswer(answered) {
      metrics.answered(answered);
      logAnswer(answered);
    },
    metrics: {
      token: config.metricsToken,
      contentType: METRICS_CONTENT_TYPE,
      read: openScrape({ ...parts, checks, health, lanes: laneLimits(config) }),
    },
    ui: isApi
      ? {
          files: uiFiles(),
          draw: uiDraw(),
          newestEvent: (senderId) => newestEvent({ db, clock }, senderId),
          routes: dashboardRoutes(parts),
          program: FORM.name,
          provider: providerHost(config),
          hasMembers: () => hasMembers(db),
        }
      : null,
    ...(hostsDomains(config) ? { servesAt: servesAtDomainHosts(config) } : {}),
    wellKnown: isApi ? mtaStsRoutes({ policyAt: policiesByHost({ db, clock }, config) }) : [],
    routes: isApi ? [...homeRoutes({ publicUrl, delivery }), ...apiRoutes(partsOf(parts, health))] : [],
  };
}

/** Returns the routes that only the dashboard uses. */
function dashboardRoutes(parts: HttpParts): Route[] {
  const { db, config, keys, signIns } = parts;
  const mailing = { ...parts, publicUrl: config.publicUrl, captures: config.delivery === "capture" };
  const session = { db, config, sessionKey: keys.session, signIns, noteRefused: noteRefused(db) };
  const mailLink = (email: string) => mailLinkTo(mailing, email);
  return [
    ...sessionRoutes({ ...session, mailLinkTo: mailLink }),
    ...providerRoutes(session, providerOf(parts)),
    ...draftRoutes(),
    ...topicPageRoutes({ db }),
  ];
}

/** Returns the services of the API's routes. */
function partsOf(parts: HttpParts, health: Parts["health"]): Parts {
  const { config, clock, db, keys } = parts;
  return {
    ...parts,
    ...checkingOf(parts),
    receivers: receiverView(parts),
    ...laneLimits(config),
    relayKey: keys.relay,
    fileKey: keys.file,
    quotas: config.quotas,
    captures: config.delivery === "capture",
    hostname: mxName(config),
    handOut: createDownloads(clock),
    payloads: new SharedPayloads(),
    urlRules: { mayReach: webhookGuard(config, clock), allowPrivate: config.allowPrivateWebhooks },
    readRelayUrl: parseSmarthost,
    health,
    findWaits: openWaits({ db, clock, ...laneLimits(config), waysOf: waysFinder(parts.outbound) }),
    getDocument: documentGetter(parts),
    links: linkDeps(parts),
    dnsHealth: cachedHealth(
      clock,
      outsideChecks({ config, clock, db: () => db }, parts.resolver),
      DNS_FRESH_MS,
    ),
    certificates: cacheFor(clock, HEALTH_FRESH_MS, () => certificateStates(db, config, clock.now())),
    settings: settingsOf(config),
  };
}

/** Returns what asks the links of a content, which must lead to public addresses, as those of webhooks. */
function linkDeps({ config, clock, resolver, documentHosts }: HttpParts): Parts["links"] {
  const allowPrivate = config.allowPrivateWebhooks;
  return { clock, resolver, ca: documentHosts.ca, mayReach: webhookGuard(config, clock), allowPrivate };
}

/** Time for getting a document, milliseconds, and its largest size, octets. A certificate has two thousand. */
const DOCUMENT_TIMEOUT_MS = 10_000;
const MAX_DOCUMENT_OCTETS = 16 * 1024;

/** Returns what gets a document over TLS from a public address. */
function documentGetter({ config, clock, resolver, documentHosts }: HttpParts): GetDocument {
  const { ca, port, allowPrivate = false } = documentHosts;
  const deps = { clock, resolver, ca, mayReach: allowPrivate ? () => true : webhookGuard(config, clock) };
  return async (named) => {
    const url = new URL(named);
    if (port !== undefined) url.port = String(port);
    const headers = { "User-Agent": "postrider" };
    const limits = {
      maxBodyOctets: MAX_DOCUMENT_OCTETS,
      timeoutMs: DOCUMENT_TIMEOUT_MS,
      allowPrivate,
    };
    const outcome = await requestGuarded(deps, { url: url.href, headers, body: null, ...limits });
    const isWhole = outcome.kind === "answered" && outcome.whole && outcome.response.status === 200;
    return isWhole ? outcome.response.body : null;
  };
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
