import { CertificateError, readChain } from "../../smtp/listener/certificate.ts";
import { type CertificateRecord, findCertificate } from "../../store/domains/certificates.ts";
import { domainCertificateStates } from "../../store/domains/domain-certificates.ts";
import type { Db } from "../../store/engine/client.ts";
import { mxHost } from "../../core/own-names.ts";
import { type HostSettings, hostsDomains, MAX_DOMAIN_CERTIFICATES } from "./domain-hosts.ts";
import { type CertificateSettings, type CertificateSource, servedCertificate, usesAcme } from "./served.ts";
import { wantedCertificates } from "./wanted.ts";

/** The state of a certificate, for the operator. Times in milliseconds. */
export interface CertificateState {
  /** The account of the domain whose hosts it is for; null: the service's own. */
  accountId: string | null;
  names: readonly string[];
  source: CertificateSource;
  /** null if there is none yet, or each process makes its own. */
  expiresAt: number | null;
  /** When it is renewed or tried again; null if it is not ordered. */
  nextAt: number | null;
  lastError: { text: string; at: number } | null;
}

/**
 * Returns the state of each certificate that our servers use or want: that of the service's own names, then those of domains,
 * failed ones first.
 */
export async function certificateStates(
  db: Db,
  settings: HostSettings,
  now: number,
): Promise<CertificateState[]> {
  if (!usesAcme(settings)) return [await ownState(db, settings, now)];
  const states: CertificateState[] = [];
  for (const { id, names } of await wantedCertificates(settings)) {
    const record = await findCertificate(db, id);
    states.push({ accountId: null, names, ...orderedState(record && timesOf(record), now) });
  }
  const domains = hostsDomains(settings) ? await domainCertificateStates(db, MAX_DOMAIN_CERTIFICATES) : [];
  return [
    ...states,
    ...domains.map((one) => ({ accountId: one.accountId, names: one.names, ...orderedState(one, now) })),
  ];
}

type Times = Pick<CertificateRecord, "renewAt" | "dueAt" | "lastError"> & { notAfter: number | null };

function timesOf({ issued, renewAt, dueAt, lastError }: CertificateRecord): Times {
  return { notAfter: issued?.notAfter ?? null, renewAt, dueAt, lastError };
}

function orderedState(times: Times | null, now: number): Omit<CertificateState, "accountId" | "names"> {
  if (times === null) return { source: "self-signed", expiresAt: null, nextAt: null, lastError: null };
  const { notAfter: expiresAt, renewAt, dueAt, lastError } = times;
  return {
    source: expiresAt === null ? "self-signed" : "acme",
    expiresAt,
    nextAt: Math.max(now, lastError === null ? (renewAt ?? dueAt) : dueAt),
    lastError,
  };
}

/** Returns the state of the certificate in the configured files, or of the self-signed one. */
async function ownState(db: Db, settings: CertificateSettings, now: number): Promise<CertificateState> {
  const own = {
    accountId: null,
    names: [mxHost(settings.serviceDomain)],
    expiresAt: null,
    nextAt: null,
    lastError: null,
  };
  try {
    const { source, chain } = await servedCertificate(() => db, settings);
    if (chain === null) return { ...own, source };
    const [leaf] = readChain(chain);
    return { ...own, source, names: hostsOf(leaf.subjectAltName), expiresAt: Date.parse(leaf.validTo) };
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return { ...own, source: "file", lastError: { text: error.message, at: now } };
  }
}

/** Reads the hosts from text such as `DNS:mx.mail.test, DNS:mail.test`. */
function hostsOf(subjectAltName: string | undefined): string[] {
  return [...(subjectAltName ?? "").matchAll(/DNS:([^,\s]+)/g)].map(([, name = ""]) => name);
}
