import type { PhraseGroup } from "./phrase-group.ts";
import { AUTHENTICATION, BLOCKLISTS, SENDER_ADDRESS, SENDER_SIDE } from "./phrases-sender.ts";
import { CONTENT, SIZE } from "./phrases-content.ts";
import {
  LOCAL_PROGRAM,
  LOOPS,
  POLICY,
  PROTOCOL,
  RELAYING,
  TROUBLE,
  WHOLE_SENTENCES,
} from "./phrases-delivery.ts";
import { DISABLED, FULL, INVALID, NO_DOMAIN, NO_MAILBOX, TEMPORARY, UNAVAILABLE } from "./phrases-mailbox.ts";

/**
 * Groups of patterns; the first group that matches counts. The order matters. A complaint about the sender may quote
 * words for an unknown user. A mailbox that is "not found over quota" is full.
 */
export const TEXT_RULES: readonly PhraseGroup[] = [
  ...WHOLE_SENTENCES,
  AUTHENTICATION,
  SENDER_ADDRESS,
  LOOPS,
  FULL,
  SIZE,
  LOCAL_PROGRAM,
  BLOCKLISTS,
  CONTENT,
  RELAYING,
  SENDER_SIDE,
  TEMPORARY,
  NO_MAILBOX,
  DISABLED,
  NO_DOMAIN,
  INVALID,
  UNAVAILABLE,
  PROTOCOL,
  TROUBLE,
  POLICY,
];
