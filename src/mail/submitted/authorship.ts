import { isWithin, type Mailbox } from "../../core/addresses.ts";
import type { RawField } from "../reading/raw-headers.ts";
import { strictList, strictMailbox } from "./strict-mailbox.ts";

/** The persons in a header, read from the octets that are sent. */
export interface Authorship {
  /** Null if the message has no From. */
  from: Mailbox | null;
  replyTo: Mailbox[];
}

/** A fault of a header, in the words of the reply. */
export interface AuthorshipFault {
  /** True if the header is well-formed, but names an author that it may not name. */
  forbidden: boolean;
  text: string;
}

/** Fields that a message has once (RFC 5322 §3.6). Of several, readers show different ones. */
const SINGLE: ReadonlyMap<string, string> = new Map(
  ["From", "Sender", "Reply-To", "Subject", "Date", "Message-ID"].map((name) => [name.toLowerCase(), name]),
);
const AS_ADDRESS = "written as Name <user@example.com>, without comments, groups or control characters";

/**
 * Reads the author of a message. Refuses every header in which a reader could find another author than the one
 * whose domain is checked and signed.
 */
export function readAuthorship(fields: readonly RawField[]): Authorship | AuthorshipFault {
  const single = new Map<string, RawField>();
  for (const field of fields) {
    const shown = SINGLE.get(field.name);
    if (shown === undefined) continue;
    if (single.has(field.name)) return fault(field.name, `The header has more than one ${shown}`);
    single.set(field.name, field);
  }
  const mailbox = (name: string): Mailbox | null | undefined => {
    const field = single.get(name);
    return field === undefined ? undefined : strictMailbox(field);
  };
  const from = mailbox("from");
  if (from === null) return fault("from", `From must have one address, ${AS_ADDRESS}`);
  const sender = mailbox("sender");
  if (sender === null) return fault("sender", `Sender must have one address, ${AS_ADDRESS}`);
  if (sender && from && !isWithin(domainOf(sender), domainOf(from)))
    return { forbidden: true, text: "The domain of Sender must be that of From, or below it" };
  const field = single.get("reply-to");
  const replyTo = field === undefined ? [] : strictList(field);
  return replyTo === null
    ? fault("reply-to", "Reply-To is no list of addresses")
    : { from: from ?? null, replyTo };
}

function fault(name: string, text: string): AuthorshipFault {
  return { forbidden: name === "from", text };
}

function domainOf({ email }: Mailbox): string {
  return email.slice(email.lastIndexOf("@") + 1);
}
