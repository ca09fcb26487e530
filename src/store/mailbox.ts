import type { Mailbox } from "../core/addresses.ts";

/** A mailbox as its two columns hold it. */
export function storedMailbox(email: string, name: string | null): Mailbox {
  return name === null ? { email } : { email, name };
}
