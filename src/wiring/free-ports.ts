import type { Config } from "../config.ts";

type Listening = Pick<
  Config,
  | "host"
  | "port"
  | "roles"
  | "smtpHost"
  | "smtpPort"
  | "dnsHost"
  | "dnsPort"
  | "metricsPort"
  | "smtpPortShared"
>;

/** Where `/metrics` listens without a token. */
const LOOPBACK = "127.0.0.1";

/**
 * Throws the system's error if another program has a port of ours. A first start calls it before it makes the keys,
 * which would else be shown by a start that fails, and by no later one.
 */
export function requireFreePorts(config: Listening): void {
  for (const { host, port, reusePort = false } of placesOf(config))
    Bun.listen({ hostname: host, port, ...{ reusePort }, socket: { data: () => undefined } }).stop(true);
}

/** Returns where this process will listen. Port 0 is any free port. */
function placesOf(config: Listening): { host: string; port: number; reusePort?: boolean }[] {
  const { dnsHost, dnsPort, metricsPort, smtpPortShared: reusePort } = config;
  return [
    { host: config.host, port: config.port },
    ...(config.roles.has("smtp") ? [{ host: config.smtpHost, port: config.smtpPort, reusePort }] : []),
    ...(dnsPort === null ? [] : dnsHost.map((host) => ({ host, port: dnsPort }))),
    ...(metricsPort === null ? [] : [{ host: LOOPBACK, port: metricsPort }]),
  ];
}
