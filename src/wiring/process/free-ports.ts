import type { Config } from "../../config.ts";

type Listening = Pick<
  Config,
  | "host"
  | "port"
  | "tlsPort"
  | "roles"
  | "smtpHost"
  | "smtpPort"
  | "smtpPortShared"
  | "submissionHost"
  | "submissionPort"
  | "submissionsPort"
  | "dnsHost"
  | "dnsPort"
  | "metricsPort"
>;

/** Where this process listens. */
export interface Place {
  host: string;
  /** 0 is any free port. */
  port: number;
  /** The settings that say so. The host of `/metrics` cannot be set. */
  settings: { host: string | null; port: string };
  /** True if other processes of ours may listen there, too. */
  reusePort?: boolean;
}

/** Where `/metrics` listens without a token. */
const LOOPBACK = "127.0.0.1";

/**
 * Throws the system's error if another program has a port of ours. A first start calls it before it makes the keys,
 * which would else be shown by a start that fails, and by no later one.
 */
export function requireFreePorts(config: Listening): void {
  for (const { host, port, reusePort = false } of placesOf(config)) {
    // Bun's declarations lack this option.
    const shared = { reusePort };
    Bun.listen({ hostname: host, port, ...shared, socket: { data: () => undefined } }).stop(true);
  }
}

/** Returns where this process will listen. */
export function placesOf(config: Listening): Place[] {
  const { host, smtpHost, submissionHost, dnsHost, smtpPortShared: reusePort } = config;
  const smtp: Place[] = [
    { host: smtpHost, port: config.smtpPort, settings: { host: "SMTP_HOST", port: "SMTP_PORT" }, reusePort },
    ...place(submissionHost, config.submissionPort, { host: "SUBMISSION_HOST", port: "SUBMISSION_PORT" }),
    ...place(submissionHost, config.submissionsPort, { host: "SUBMISSION_HOST", port: "SUBMISSIONS_PORT" }),
  ];
  return [
    ...place(host, config.port, { host: "HOST", port: "PORT" }),
    ...place(host, config.tlsPort, { host: "HOST", port: "TLS_PORT" }),
    ...(config.roles.has("smtp") ? smtp : []),
    ...dnsHost.flatMap((one) => place(one, config.dnsPort, { host: "DNS_HOST", port: "DNS_PORT" })),
    ...place(LOOPBACK, config.metricsPort, { host: null, port: "METRICS_PORT" }),
  ];
}

function place(host: string, port: number | null, settings: Place["settings"]): Place[] {
  return port === null ? [] : [{ host, port, settings }];
}
