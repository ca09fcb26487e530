import { networkInterfaces } from "node:os";
import type { Config } from "../../config.ts";
import { takesSubmissions } from "./takes-sends.ts";
import type { Clock } from "../../core/time/clock.ts";
import { distinctAddresses } from "../../core/networks.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { type AddressGuard, openAddressGuard } from "../../net/address-guard.ts";

/** Time for which the machine's addresses are remembered. */
const REMEMBERED_MS = MINUTE_MS;

/** Listeners on these addresses listen on every address of the machine. */
const ALL_ADDRESSES: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

type Listening = Pick<
  Config,
  | "publicIps"
  | "host"
  | "smtpHost"
  | "submissionHost"
  | "submissionPort"
  | "submissionsPort"
  | "dnsHost"
  | "dnsPort"
  | "roles"
>;

/** Returns PUBLIC_IPS and every address on which a listener of this process listens, each once. */
export function ownAddresses(config: Listening, machine: readonly string[]): string[] {
  const { publicIps, host, smtpHost, submissionHost, dnsHost, dnsPort, roles } = config;
  const listening = [
    host,
    ...(roles.has("smtp") ? [smtpHost] : []),
    ...(takesSubmissions(config) ? [submissionHost] : []),
    ...(dnsPort === null ? [] : dnsHost),
  ];
  const addresses = listening.flatMap((one) => (ALL_ADDRESSES.has(one) ? machine : [one]));
  return distinctAddresses([...publicIps, ...addresses]);
}

/** Returns the addresses of the machine's interfaces. A scoped address is left out: no URL or record can name one. */
function machineAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address)
    .filter((address) => !address.includes("%"));
}

/** The guard of webhooks. */
export function webhookGuard(config: Listening & Pick<Config, "webhookDeny">, clock: Clock): AddressGuard {
  let known: { at: number; addresses: string[] } | null = null;
  return openAddressGuard({
    denied: config.webhookDeny,
    own() {
      const now = clock.elapsed();
      if (known === null || now - known.at > REMEMBERED_MS)
        known = { at: now, addresses: ownAddresses(config, machineAddresses()) };
      return known.addresses;
    },
  });
}
