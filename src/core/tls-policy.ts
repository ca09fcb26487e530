/** A TLSA record (RFC 6698 §2.1). */
export interface TlsaRecord {
  usage: number;
  selector: number;
  matchingType: number;
  data: Uint8Array;
}

/** Certificate usages for SMTP (RFC 6698 §2.1.1, RFC 7218 §2.1): a trust anchor, and the certificate itself. */
export const DANE_TA = 2;
export const DANE_EE = 3;

/** DANE requirements for a peer's certificate (RFC 7672 §3). */
export interface DaneDemand {
  /** Usable records; one must match. */
  records: readonly TlsaRecord[];
  /**
   * If a trust anchor (usage 2) matches, the certificate must have one of these names. The first is the base name of the
   * TLSA records.
   */
  names: readonly string[];
}

/** Requirements of a published policy for the connection to one host. */
export interface HostSecurity {
  /** `opportunistic`: the policy is only recorded. `encrypted`: TLS. `verified`: TLS with a valid certificate. */
  tls: "opportunistic" | "encrypted" | "verified";
  /** With `verified`: these records replace the certificate authorities. */
  dane?: DaneDemand;
  /**
   * Name and demand of the policy, for the attempt's record. It does not name the domain, because all domains of the host
   * share connections and must not see each other.
   */
  policy: string;
}
