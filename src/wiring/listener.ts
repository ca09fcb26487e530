import { SettingsError } from "../core/errors.ts";
import { openDoor } from "../flows/receive/door.ts";
import { log } from "../log.ts";
import { type Certificate, CertificateError, endOf, loadCertificate } from "../smtp/certificate.ts";
import { createListener, type Listener, MAX_INBOUND_RECIPIENTS } from "../smtp/listener.ts";
import { mxName } from "./delivery.ts";
import type { Ground } from "./ground.ts";
import { maxFds } from "./process-sample.ts";

const SETTINGS_OF = {
  key: "SMTP_TLS_KEY",
  cert: "SMTP_TLS_CERT",
  both: "SMTP_TLS_KEY and SMTP_TLS_CERT",
} as const;

/**
 * The listener's key and certificate as the settings name them, else a self-signed one. One that has expired is served, and told:
 * most senders do not look at it.
 * @throws SettingsError where the settings name what cannot be served
 */
export async function listenerCertificate({
  config,
  clock,
}: Pick<Ground, "config" | "clock">): Promise<Certificate> {
  const { smtpTlsKey: keyFile, smtpTlsCert: certFile } = config;
  try {
    const certificate = await loadCertificate({ clock }, { keyFile, certFile }, mxName(config));
    const ends = endOf(certificate);
    if (ends <= clock.now())
      log("smtp").warn("the certificate has expired", { file: certFile, at: new Date(ends).toISOString() });
    return certificate;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new SettingsError(`${SETTINGS_OF[error.part]}: ${error.message}`, { cause: error });
  }
}

/**
 * Share of the process's file handles that sessions may take. With all of them strangers would end the API too, and mail
 * out; a session too many is told 421.
 */
const SHARE_OF_FILES = 0.75;

/** Puts the SMTP listener together, STARTTLS with that certificate; it does not listen yet. */
export function openListener(ground: Ground, tls: Certificate): Listener {
  const { config, clock, db, queue, keys, metrics } = ground;
  const hostname = mxName(config);
  const handler = openDoor({
    db,
    clock,
    queue,
    hostname,
    serviceDomain: config.serviceDomain,
    verpKey: keys.verp,
    inspect: ground.inspect,
    received: metrics.received,
  });
  return createListener(
    { clock, handler, log: log("smtp"), meter: metrics.smtp },
    {
      host: config.smtpHost,
      port: config.smtpPort,
      hostname,
      maxMessageBytes: config.maxMessageBytes,
      maxRecipients: MAX_INBOUND_RECIPIENTS,
      maxConnections: Math.min(config.smtpMaxConnections, SHARE_OF_FILES * (maxFds() ?? Infinity)),
      maxConnectionsPerIp: config.smtpMaxConnectionsPerIp,
      proxies: config.smtpProxies,
      tls,
    },
  );
}
