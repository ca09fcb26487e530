import { exim } from "./exim.ts";
import { opensmtpd } from "./opensmtpd.ts";
import type { PeerKind } from "./peer.ts";
import { postfix } from "./postfix.ts";

/** The mail servers that the service is tried against. */
export const PEER_KINDS: readonly PeerKind[] = [postfix, exim, opensmtpd];

/** A peer's name with the reason why its tests are skipped, where they are. */
export function titleOf({ name, missing }: PeerKind): string {
  return missing === null ? name : `${name} (skipped: ${missing})`;
}
