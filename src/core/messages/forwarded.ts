/** Facts about the arrival of a message that a rule forwards, stored in the envelope of the forward. */
export interface ForwardedCopy {
  /** The received message. */
  emailId: string;
  ruleId: string;
  /** Address of the inbox that it came to. */
  inbox: string;
  /** The trace fields that we put in front of it when it arrived. */
  trace: string;
  /** The result of its ARC chain then (RFC 8617 §4.4). */
  arc: string;
  /** The addresses in its To and Cc, so that the erasure of one finds it. */
  named: readonly string[];
}
