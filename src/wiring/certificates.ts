import { readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import { unseal } from "../core/crypto/secretbox.ts";
import { reasonOf, SettingsError } from "../core/errors.ts";
import { SECOND_MS } from "../core/time/units.ts";
import { openRenewal } from "../flows/certificates/renew.ts";
import { hostsDomains } from "../flows/certificates/domain-hosts.ts";
import { CHALLENGE_SETTLE_MS, SECONDARIES_SETTLE_MS } from "../flows/certificates/order.ts";
import { usesAcme } from "../flows/certificates/served.ts";
import { serviceCertificate, wantedCertificates } from "../flows/certificates/wanted.ts";
import { log } from "../log.ts";
import { createAcmeClient } from "../net/acme/client.ts";
import type { ExternalAccount } from "../net/acme/jws.ts";
import type { Certificate } from "../smtp/listener/certificate.ts";
import { findCertificate, type IssuedCertificate } from "../store/domains/certificates.ts";
import { listenerCertificate } from "./listener.ts";
import { type Chore, startLoop } from "./process/loop.ts";
import type { Services } from "./services.ts";

/**
 * Pause between two checks for a new certificate. Each process must switch before the previous one expires.
 */
const LOOK_PAUSE_MS = 5 * SECOND_MS;

/** The certificate of this process's servers. */
export interface ServerCertificate {
  /** The one to start with. */
  readonly first: Certificate;
  /** Calls `use` with every later one. */
  onChange(use: (certificate: Certificate) => void): void;
  /**
   * Reads the configured files again. Returns false if none are configured. If they cannot be used, rejects, and the old
   * certificate stays.
   */
  reload(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Returns true if this process has a server with TLS. */
export function needsCertificate({ roles, tlsPort }: Pick<Config, "roles" | "tlsPort">): boolean {
  return roles.has("smtp") || (roles.has("api") && tlsPort !== null);
}

/**
 * Opens the certificate of the servers: the configured files, else the one that was ordered, else a self-signed one. Looks
 * for a renewed one from time to time, because another process may have ordered it.
 */
export async function openServerCertificate(
  services: Services,
  fallback: Promise<Certificate>,
): Promise<ServerCertificate> {
  const { config, clock } = services;
  const users: ((certificate: Certificate) => void)[] = [];
  const use = (certificate: Certificate): void => {
    for (const one of users) one(certificate);
  };
  const look = usesAcme(config) ? orderedCertificate(services) : async () => null;
  const first = (await look()) ?? (await fallback);
  const turn = async (): Promise<void> => {
    const fresh = await look();
    if (fresh !== null) use(fresh);
  };
  const loop = usesAcme(config)
    ? startLoop({ clock, failures: services.metrics.turnFailures }, LOOK_PAUSE_MS, {
        name: "certificate-changes",
        turn,
      })
    : null;
  return {
    first,
    onChange: (one) => void users.push(one),
    async reload() {
      if (config.smtpTlsCert === null) return false;
      use(await listenerCertificate(services));
      return true;
    },
    stop: async () => loop?.stop(),
  };
}

/** Returns a function that reads the ordered certificate, and returns it if it is another one than at the last call. */
function orderedCertificate({ config, db, keys }: Services): () => Promise<Certificate | null> {
  const { id } = serviceCertificate(config);
  let known: IssuedCertificate | null = null;
  return async () => {
    const issued = (await findCertificate(db, id))?.issued ?? null;
    if (issued === null || issued.chain === known?.chain) return null;
    const certificate = { key: unseal(keys.box, issued.sealedKey), cert: issued.chain };
    known = issued;
    return certificate;
  };
}

/** Makes the chore that gets and renews certificates; none if that is off. */
export function certificateChores({ config, clock, db, keys, resolver }: Services): Chore[] {
  const { acmeEmail: email, acmeDirectory: directory } = config;
  if (email === null || !usesAcme(config)) return [];
  if (config.dnsPort === null)
    log("net").warn("ACME_EMAIL is set, but DNS_PORT is not: another process must have our name server");
  const client = createAcmeClient({ clock, resolver, ca: authorities(config) }, directory);
  const turn = openRenewal({
    db,
    clock,
    client,
    directory,
    email,
    boxKey: keys.box,
    external: externalAccount(config),
    wanted: () => wantedCertificates(config),
    domains: hostsDomains(config),
    serviceDomain: config.serviceDomain,
    settleMs: config.dnsSecondaries.length === 0 ? CHALLENGE_SETTLE_MS : SECONDARIES_SETTLE_MS,
    random: Math.random,
  });
  return [{ name: "certificates", turn }];
}

function authorities({ acmeCaFile }: Config): string | undefined {
  if (acmeCaFile === null) return undefined;
  try {
    return readFileSync(acmeCaFile, "utf8");
  } catch (cause) {
    throw new SettingsError(`ACME_CA_FILE: ${acmeCaFile} cannot be read (${reasonOf(cause)})`, { cause });
  }
}

function externalAccount({ acmeEabKid: kid, acmeEabHmacKey: hmacKey }: Config): ExternalAccount | null {
  return kid === null || hmacKey === null ? null : { kid, hmacKey };
}
