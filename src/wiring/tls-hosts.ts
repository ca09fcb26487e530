import { unseal } from "../core/crypto/secretbox.ts";
import { SECOND_MS } from "../core/time/units.ts";
import { hostsDomains, MAX_DOMAIN_CERTIFICATES } from "../flows/certificates/domain-hosts.ts";
import { serviceCertificate } from "../flows/certificates/wanted.ts";
import type { TlsFiles } from "../http/server/listen.ts";
import {
  domainCertificates,
  domainCertificatesVersion,
  issuedDomainCertificates,
} from "../store/domains/domain-certificates.ts";
import type { ServerCertificate } from "./certificates.ts";
import { startLoop } from "./process/loop.ts";
import type { Services } from "./services.ts";

/**
 * Pause between two checks for new certificates of domains. Each change makes the server listen again, so all changes
 * of a pause are one. It is shorter than the time after which messages count on a new certificate.
 */
const LOOK_PAUSE_MS = 30 * SECOND_MS;

/** The certificates of TLS_PORT: the service's own for any client, and those of domains for clients that name their hosts. */
export interface TlsHosts {
  /** Those to start with. */
  readonly first: readonly TlsFiles[];
  /** Calls `use` with all of them after each change. */
  onChange(use: (all: readonly TlsFiles[]) => void): void;
  stop(): Promise<void>;
}

/** Opens the certificates of TLS_PORT; null if this process does not serve it. */
export async function openTlsHosts(services: Services, own: ServerCertificate): Promise<TlsHosts | null> {
  const { config, clock, metrics } = services;
  if (config.tlsPort === null || !config.roles.has("api")) return null;
  const look = hostsDomains(config) ? hostCertificates(services) : async () => null;
  const { names } = serviceCertificate(config);
  let ours: TlsFiles = own.first;
  let hosts = (await look()) ?? [];
  // The service's names are listed too, because one of them may be below a customer's domain. An exact name goes first.
  const all = () => [
    ours,
    ...(hosts.length === 0 ? [] : names.map((serverName) => ({ ...ours, serverName }))),
    ...hosts,
  ];
  const first = all();
  let use = (_: readonly TlsFiles[]): void => undefined;
  own.onChange((renewed) => {
    ours = renewed;
    use(all());
  });
  const turn = async (): Promise<void> => {
    const fresh = await look();
    if (fresh === null) return;
    hosts = fresh;
    use(all());
  };
  const loop = hostsDomains(config)
    ? startLoop({ clock, failures: metrics.turnFailures }, LOOK_PAUSE_MS, { name: "tls-hosts", turn })
    : null;
  return {
    first,
    onChange(next) {
      use = next;
    },
    stop: async () => loop?.stop(),
  };
}

/** Returns a function that reads the certificates of all domains; null if they are those of the last call. */
function hostCertificates({ clock, db, keys }: Services): () => Promise<readonly TlsFiles[] | null> {
  const known = new Map<string, { issuedAt: number; files: TlsFiles }>();
  let version: string | null = null;
  return async () => {
    const current = await domainCertificatesVersion(db);
    if (current === version) return null;
    const issued = await issuedDomainCertificates(db, clock.now(), MAX_DOMAIN_CERTIFICATES);
    for (const id of known.keys()) if (!issued.has(id)) known.delete(id);
    const changed = [...issued].filter(([id, at]) => known.get(id)?.issuedAt !== at).map(([id]) => id);
    for (const certificate of await domainCertificates(db, changed)) {
      const { id, domain, names, chain: cert, sealedKey, issuedAt } = certificate;
      const key = unseal(keys.box, sealedKey);
      const [only = "", ...others] = names;
      // One entry for all hosts of a domain, because each entry is read by itself.
      const serverName = others.length === 0 ? only : `*.${domain}`;
      known.set(id, { issuedAt, files: { serverName, key, cert } });
    }
    version = current;
    return [...known.values()].map(({ files }) => files);
  };
}
