import type { Mailbox } from "../core/addresses.ts";

/** A mailbox as its two columns hold it. */
export function storedMailbox(email: string, name: string | null): Mailbox {
  return name === null ? { email } : { email, name };
}

/** SQL for the domain that a message `m` is from: an address that we take has one `@` (RFC 5322 §3.2.3 dot-atom). */
export const FROM_DOMAIN = "substr(m.from_email, instr(m.from_email, '@') + 1)";
