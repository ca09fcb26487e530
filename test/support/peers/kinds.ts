import { exim } from "./exim.ts";
import { opensmtpd } from "./opensmtpd.ts";
import type { PeerKind } from "./peer.ts";
import { postfix } from "./postfix.ts";

/** The mail servers that the service is tried against. */
export const PEER_KINDS: readonly PeerKind[] = [postfix, exim, opensmtpd];

/** Returns a peer's name, with the reason if its tests are skipped. */
export function titleOf({ name, missing }: PeerKind): string {
  return missing === null ? name : `${name} (skipped: ${missing})`;
}
