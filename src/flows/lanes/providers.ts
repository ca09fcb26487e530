/** The values of a provider's lane. */
export interface ProviderLimits {
  /** Maximum number of connections at a time, per process. */
  connections: number;
  /** Maximum number of messages on one connection. */
  messages: number;
  /** Maximum number of messages a second. 0: no limit. */
  rate: number;
}

/** A large provider, or a filter that many customers share. Its MX hosts share one lane. */
export interface Provider extends ProviderLimits {
  /** Short name, as `GET /v1/lanes` and `LANES` have it. */
  name: string;
  /** Name as its users know it. */
  title: string;
  /**
   * Names of its mail hosts, and of those alone: a host in its zone that takes no mail would let a stranger close the
   * lane. If the pattern has a group, each value of it has a separate lane: a customer or a region.
   */
  hosts: RegExp;
  /** True if mail must not go to it in the clear. */
  tlsRequired: boolean;
  /** The page on which an operator asks to be taken off its block list. Null if none is known. */
  delisting: string | null;
  /** The page on which an operator enrols for its complaints. Null if it sends none, or sends them unasked. */
  feedbackLoop: string | null;
  /** The source of the numbers, and when it was read. */
  source: string;
}

const KUMO = "KumoMTA's shaping.toml, 016ebf44, read 2026-11";
const CAUTIOUS = "no public figure, read 2026-11: our default";

/** Limits of connections, messages per connection and messages a second if the provider names none. */
const USUAL: ProviderLimits = { connections: 5, messages: 50, rate: 20 };

type Given = Partial<Provider> & Pick<Provider, "name" | "title" | "hosts" | "source">;

function provider(given: Given): Provider {
  return { ...USUAL, tlsRequired: false, delisting: null, feedbackLoop: null, ...given };
}

/** The providers. The first row with a pattern that fits all MX hosts of a domain gives its lane. */
export const PROVIDERS: readonly Provider[] = [
  provider({
    name: "google",
    title: "Google",
    connections: 5,
    messages: 50,
    hosts:
      /^(?:(?:alt\d\.)?(?:aspmx|gmail-smtp-in|gmr-smtp-in)\.l\.google|aspmx\d\.googlemail|smtp\.google)\.com$/,
    tlsRequired: true,
    delisting: "https://support.google.com/mail/contact/gmail_bulk_sender_escalation",
    source: `${KUMO}; Google's sender guidelines require TLS, read 2026-02`,
  }),
  provider({
    name: "outlook",
    title: "Outlook.com",
    connections: 5,
    messages: 50,
    hosts: /^[a-z\d-]+\.olc\.protection\.outlook\.com$/,
    delisting: "https://olcsupport.office.com/",
    feedbackLoop: "https://sendersupport.olc.protection.outlook.com/snds/",
    source: KUMO,
  }),
  provider({
    name: "microsoft365",
    title: "Microsoft 365",
    connections: 5,
    messages: 50,
    hosts: /^(?:[a-z\d-]+\.mail\.protection\.outlook\.com|[a-z\d-]+\.[a-z]-v\d\.mx\.microsoft)$/,
    delisting: "https://sender.office.com/",
    source: KUMO,
  }),
  provider({
    name: "yahoo",
    title: "Yahoo",
    connections: 5,
    messages: 20,
    // AT&T's domains are Yahoo's, too: `al-ip4-mx-vip1.prodigy.net` forwards to it.
    hosts:
      /^(?:(?:mta\d|mx-[a-z\d-]+|[a-z\d-]+\.mail|mx-[a-z\d.-]+\.mail)\.(?:am0|gm0)\.yahoodns\.net|[a-z]{2}-ip4-mx-vip\d\.prodigy\.net)$/,
    delisting: "https://senders.yahooinc.com/contact",
    feedbackLoop: "https://senders.yahooinc.com/complaint-feedback-loop/",
    source: `${KUMO}: given by Yahoo`,
  }),
  provider({
    name: "apple",
    title: "iCloud",
    connections: 10,
    messages: 5,
    hosts: /^mx\d\d\.mail\.icloud\.com$/,
    delisting: "https://support.apple.com/en-us/102322",
    source: KUMO,
  }),
  provider({
    name: "united-internet",
    title: "GMX, WEB.DE and IONOS",
    connections: 5,
    messages: 50,
    hosts:
      /^(?:mx\d\d\.emig\.gmx\.net|mx\d\d\.gmx\.(?:net|com)|mx-ha\d\d\.web\.de|mx\d\d\.(?:ionos\.(?:de|com|co\.uk|es|fr|it)|kundenserver\.de|1and1\.(?:com|co\.uk|de|es|fr|it)|schlund\.de|mail\.com))$/,
    delisting: "https://postmaster.gmx.net/en/contact",
    source: CAUTIOUS,
  }),
  provider({
    name: "orange",
    title: "Orange",
    connections: 3,
    messages: 50,
    hosts: /^smtp-in\.(?:orange|wanadoo)\.fr$/,
    delisting: "https://postmaster.orange.fr/",
    feedbackLoop: "https://www.signal-spam.fr/en/",
    source: KUMO,
  }),
  provider({
    name: "laposte",
    title: "La Poste",
    connections: 2,
    messages: 50,
    hosts: /^smtp[a-z]?\d?\.laposte\.net$/,
    delisting: "https://postmaster.laposte.net/",
    feedbackLoop: "https://www.signal-spam.fr/en/",
    source: CAUTIOUS,
  }),
  provider({
    name: "tencent",
    title: "QQ Mail",
    connections: 3,
    messages: 20,
    hosts: /^mx(?:biz)?\d\.qq\.com$/,
    delisting: "https://open.mail.qq.com/",
    source: CAUTIOUS,
  }),
  provider({
    name: "netease",
    title: "NetEase",
    connections: 3,
    messages: 20,
    hosts: /^(?:[a-z\d]+mx\d\d(?:\.mxmail)?\.netease\.com|[a-z\d]+mx\d\d\.(?:ym\.)?163\.com)$/,
    delisting: "https://mail.163.com/postmaster/",
    source: CAUTIOUS,
  }),
  provider({
    name: "mail.ru",
    title: "Mail.ru",
    connections: 5,
    messages: 50,
    hosts: /^(?:mxs|emx)\.mail\.ru$/,
    delisting: "https://postmaster.mail.ru/",
    feedbackLoop: "https://postmaster.mail.ru/",
    source: CAUTIOUS,
  }),
  provider({
    name: "yandex",
    title: "Yandex",
    connections: 5,
    messages: 50,
    hosts: /^mx\.yandex\.(?:ru|net)$/,
    delisting: "https://postoffice.yandex.com/",
    source: CAUTIOUS,
  }),
  provider({
    name: "comcast",
    title: "Comcast",
    connections: 25,
    messages: 1000,
    tlsRequired: true,
    hosts: /^mx\d(?:[a-z]\d)?(?:[a-z])?\.(?:mxge\.)?comcast\.net$/,
    delisting: "https://spa.xfinity.com/postmaster",
    feedbackLoop: "https://fbl.validity.com/",
    source: `${KUMO}: given by Comcast`,
  }),
  provider({
    name: "t-online",
    title: "T-Online",
    connections: 3,
    messages: 20,
    hosts: /^mx\d\d\.t-online\.de$/,
    delisting: "https://postmaster.t-online.de/",
    source: CAUTIOUS,
  }),
  provider({
    name: "proofpoint",
    title: "Proofpoint",
    connections: 5,
    messages: 50,
    hosts: /^mx\d[a-z]-([\da-f]{8})\.(?:gslb\.)?pphosted\.com$/,
    delisting: "https://ipcheck.proofpoint.com/",
    source: CAUTIOUS,
  }),
  provider({
    name: "mimecast",
    title: "Mimecast",
    connections: 10,
    messages: 100,
    hosts: /^([a-z]{2,3})-smtp-inbound-\d\.mimecast(?:-offshore)?\.(?:com|co\.za)$/,
    delisting: "https://community.mimecast.com/",
    source: `${KUMO}: given by Mimecast, each region by itself`,
  }),
  provider({
    name: "barracuda",
    title: "Barracuda",
    connections: 5,
    messages: 50,
    hosts: /^d(\d+)[a-z]?\.ess\.(?:[a-z]{2}\.)?barracudanetworks\.com$/,
    delisting: "https://www.barracudacentral.org/rbl/removal-request",
    source: CAUTIOUS,
  }),
];

/** The provider of some MX hosts, and the name of its lane: `google`, or `mimecast:eu` with the region. */
export interface ProviderLane {
  provider: Provider;
  name: string;
}

/**
 * Returns MX hosts by the lane of each, in the order in which those lanes come first: a provider's, and one for all hosts
 * that are no provider's. A stranger may list a provider's host next to his own. That does not evade the provider's
 * pace, his host's replies do not slow the provider's lane, and a provider's rest does not hold up his host.
 */
export function byLane<Host extends { name: string }>(hosts: readonly Host[]): Host[][] {
  return [...Map.groupBy(hosts, ({ name }) => providerLane([name])?.name ?? null).values()];
}

/** Returns the provider that all of some MX hosts belong to; null if there is none. */
export function providerLane(hosts: readonly string[]): ProviderLane | null {
  for (const one of PROVIDERS) {
    const sites = new Set(hosts.map((host) => siteOf(one, host)));
    const [site] = sites;
    if (site === undefined || site === null || sites.size > 1) continue;
    return { provider: one, name: site === "" ? one.name : `${one.name}:${site}` };
  }
  return null;
}

/** Returns the customer or region of a provider's host, "" if it has none; null if it is another's host. */
function siteOf({ hosts }: Provider, host: string): string | null {
  const found = hosts.exec(host);
  return found === null ? null : (found[1] ?? "");
}

/** Returns what a lane leads to, and our own address that it leaves from; null if the system chooses that. */
export function wayOfLane(lane: string): { name: string; egress: string | null } {
  const [name = "", egress] = lane.split("@");
  return { name, egress: egress ?? null };
}

/** Returns the provider with a lane of that name; null if it is no provider's. */
export function providerOfLane(lane: string): Provider | null {
  const [name] = wayOfLane(lane).name.split(":");
  return PROVIDERS.find((one) => one.name === name) ?? null;
}

/** Providers that offer TLS to every client, and whose guidelines ask senders for it. */
export const ALWAYS_TLS: ReadonlySet<string> = new Set(["google", "outlook", "microsoft365"]);

/** Matches the name of a TLS session of version 1.2 or later. */
export const GOOD_TLS = /^TLSv1\.[23] /;

const RELAY_PREFIX = "relay:";

/** Returns the name of the lane of a relay. No set of hosts has such a name. */
export function relayLane(routeId: string): string {
  return `${RELAY_PREFIX}${routeId}`;
}

/** Returns whether a lane is a relay's. */
export function isRelayLane(name: string): boolean {
  return name.startsWith(RELAY_PREFIX);
}
