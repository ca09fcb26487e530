/** The policies of DMARC, the least strict first (RFC 7489 §6.3). */
export const DMARC_POLICIES = ["none", "quarantine", "reject"] as const;
export type DmarcPolicy = (typeof DMARC_POLICIES)[number];

/** A change of the policy that a domain's zone publishes, which reports led to. */
export interface DmarcMove {
  /** Milliseconds. */
  at: number;
  from: DmarcPolicy;
  to: DmarcPolicy;
  reason: string;
}
