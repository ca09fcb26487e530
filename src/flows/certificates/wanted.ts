import type { Config } from "../../config.ts";
import { isWithin, normalizeDomain } from "../../core/addresses.ts";
import { mtaStsHost, mxHost } from "../../core/own-names.ts";

/** A certificate that the installation should have. */
export interface WantedCertificate {
  /** Its main name. */
  id: string;
  /** Names in it, the main name first. */
  names: readonly string[];
}

export type NameSettings = Pick<Config, "serviceDomain" | "publicUrl">;

/** Returns the host of PUBLIC_URL if it is in our zone, so that the zone must have its addresses; else null. */
export function apiHost({ serviceDomain, publicUrl }: NameSettings): string | null {
  const host = normalizeDomain(new URL(publicUrl).hostname);
  return host !== null && isWithin(host, serviceDomain) ? host : null;
}

/** Returns the certificate of the service's own hosts: API, mail host, and the host of its MTA-STS policy. */
export function serviceCertificate(settings: NameSettings): WantedCertificate {
  const { serviceDomain } = settings;
  const names = [serviceDomain, mxHost(serviceDomain), mtaStsHost(serviceDomain), apiHost(settings)];
  return { id: serviceDomain, names: [...new Set(names.filter((name) => name !== null))] };
}

/** Returns every certificate that we get and renew, the service's own first. Each is ordered and renewed by itself. */
export async function wantedCertificates(settings: NameSettings): Promise<WantedCertificate[]> {
  return [serviceCertificate(settings)];
}
