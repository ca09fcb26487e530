import { SERVICE_DOMAIN } from "./stage.ts";

/** Addresses of people: contacts, recipients and suppressed ones. */
export const ADDRESSES = [
  ...(["ada@ok.example", "bob@ok.example", "o'neil+news@ok.example", "per_cent@ok.example"] as const),
  ...(["nobody@gone.example", "fat@full.example", "censor@block.example", "slow@later.example"] as const),
] as const;

export const SIMULATED = [
  "delivered",
  "bounced",
  "soft-bounced",
  "complained",
  "delayed",
  "rejected",
] as const;

export function simulated(name: string): string {
  return `${name}@simulator.${SERVICE_DOMAIN}`;
}
