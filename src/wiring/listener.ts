import type { Config } from "../config.ts";
import { SettingsError } from "../core/errors.ts";
import { createInboundHandler } from "../flows/receive/inbound-handler.ts";
import { type CheckSpam, spamCheck } from "../flows/receive/spam-check.ts";
import { suspensionLimits } from "../flows/deliver/reputation.ts";
import { SECOND_MS } from "../core/time/units.ts";
import { log } from "../log.ts";
import {
  type Certificate,
  CertificateError,
  expiryOf,
  loadCertificate,
} from "../smtp/listener/certificate.ts";
import { createListener, type Listener, MAX_INBOUND_RECIPIENTS } from "../smtp/listener/listener.ts";
import { mxName } from "./delivery.ts";
import type { Services } from "./services.ts";
import { maxFds } from "./observe/process-sample.ts";

const SETTINGS_OF = {
  key: "SMTP_TLS_KEY",
  cert: "SMTP_TLS_CERT",
  both: "SMTP_TLS_KEY and SMTP_TLS_CERT",
} as const;

/**
 * Loads the certificate of the settings, or makes a self-signed one. An expired one is used and logged, because most senders
 * do not check it.
 * @throws SettingsError if the files cannot be used
 */
export async function listenerCertificate({
  config,
  ...deps
}: Pick<Services, "config" | "clock" | "makeRsaKey">): Promise<Certificate> {
  const { smtpTlsKey: keyFile, smtpTlsCert: certFile } = config;
  try {
    const certificate = await loadCertificate(deps, { keyFile, certFile }, mxName(config));
    const ends = expiryOf(certificate);
    if (ends <= deps.clock.now())
      log("smtp").warn("the certificate has expired", { file: certFile, at: new Date(ends).toISOString() });
    return certificate;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new SettingsError(`${SETTINGS_OF[error.part]}: ${error.message}`, { cause: error });
  }
}

/**
 * Share of the process's file handles that sessions may use. With all of them, clients could stop the API and sending too.
 * Further sessions get 421.
 */
const SHARE_OF_FILES = 0.75;

/** Returns the most sessions of one of our SMTP listeners. */
export function maxSessions(config: Config): number {
  const { submissionPort, submissionsPort, smtpMaxConnections } = config;
  const listeners = [submissionPort, submissionsPort].filter((port) => port !== null).length + 1;
  return Math.min(smtpMaxConnections, (SHARE_OF_FILES / listeners) * (maxFds() ?? Infinity));
}

/** Returns the check of the operator's spam filter; undefined if there is none. */
function spamFilterOf({ clock, resolver, config }: Services): CheckSpam | undefined {
  const { spamCheckUrl: url, spamCheckTimeoutSeconds } = config;
  if (url === null) return undefined;
  return spamCheck({ clock, resolver }, { url, timeoutMs: spamCheckTimeoutSeconds * SECOND_MS });
}

/** Makes the SMTP listener with a certificate for STARTTLS. It does not listen yet. */
export function openListener(services: Services, tls: Certificate): Listener {
  const { config, clock, metrics } = services;
  const hostname = mxName(config);
  const handler = createInboundHandler({
    ...services,
    hostname,
    suspension: suspensionLimits(config),
    publicIps: config.publicIps,
    dmarcReporters: config.dmarcReporters,
    quotas: config.quotas,
    received: metrics.received,
    checkSpam: spamFilterOf(services),
    spamCheckFail: config.spamCheckFail,
  });
  return createListener(
    { clock, handler, log: log("smtp"), meter: metrics.smtp },
    {
      host: config.smtpHost,
      port: config.smtpPort,
      shared: config.smtpPortShared,
      hostname,
      maxMessageBytes: config.maxMessageBytes,
      maxRecipients: MAX_INBOUND_RECIPIENTS,
      maxConnections: maxSessions(config),
      maxConnectionsPerIp: config.smtpMaxConnectionsPerIp,
      proxies: config.smtpProxies,
      tls,
    },
  );
}
