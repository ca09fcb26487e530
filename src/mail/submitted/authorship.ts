import { isWithin, type Mailbox, normalizeDomain, splitAddress } from "../../core/addresses.ts";
import { type RawField, fieldValue } from "../reading/raw-headers.ts";
import { domainToUnicode } from "node:url";
import { readAddressList } from "../reading/address-list.ts";
import { MAX_HEADER_VALUE_CHARS, wordsDecoded } from "../reading/header-block.ts";
import { mailboxes } from "../reading/parse.ts";

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

/** Maximum octets of a field that names who a message is from. Some readers cut longer ones. */
const MAX_MAILBOX_OCTETS = 2048;

/** A name without quotes, quoted strings, and an address in angle brackets. */
const NAMED = /^(?:[^\0-\x1f\x7f()<>[\]:;@\\,"]|"(?:[^"\\\0-\x1f\x7f]|\\[\x20-\x7e])*")*<([^\s<>]+)>$/;
/** An address alone, or with the comment that old programs write a name into. */
const BARE = /^([^\s()<>]+)(?: \([^\0-\x1f\x7f()<>[\]:;@\\,"]*\))?$/;
/** RFC 5322 §3.2.3 and RFC 6532 §3.2, without a quoted local part, which no mail can be sent to. */
const ADDR_SPEC = /^([^\0-\x20\x7f()<>[\]:;@\\,"]+)@([^\0-\x20\x7f()<>[\]:;@\\,"]+)$/;
/** Characters that some programs end a name at, or turn it around at. Encoded words may hold them, too. */
const UNSHOWN = /[\0-\x08\x0a-\x1f\x7f-\x9f\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/**
 * Returns the one mailbox of a field, or null unless every reader finds the same. Readers differ about comments, groups,
 * routes, open quotes, commas, control characters, spaces within addresses, and where they cut a long field. The address
 * is the octets that are sent.
 */
function strictMailbox(field: RawField): Mailbox | null {
  const { name, line } = field;
  if (line.length > MAX_MAILBOX_OCTETS || line.slice(0, line.indexOf(":")).toLowerCase() !== name)
    return null;
  // A fold of only spaces ends the header for some readers (RFC 5322 §3.2.2).
  if (/\n[ \t]+(?:\r|$)/.test(line)) return null;
  const value = fieldValue(field).replace(/\t/g, " ");
  const address = (NAMED.exec(value) ?? BARE.exec(value))?.[1];
  if (address === undefined || UNSHOWN.test(value) || UNSHOWN.test(wordsDecoded(value))) return null;
  const [, local, domain] = ADDR_SPEC.exec(address) ?? [];
  if (local === undefined || domain === undefined || local.normalize("NFKC") !== local) return null;
  if (splitAddress(address) === null) return null;
  const ascii = spelledOut(domain);
  const [found, ...others] = mailboxes(value);
  return ascii !== null && found?.email === `${local}@${ascii}` && others.length === 0 ? found : null;
}

/** Returns a domain in A-labels, or null if it has letters that only some programs map to those of a domain (UTS 46). */
function spelledOut(domain: string): string | null {
  const ascii = normalizeDomain(domain);
  return ascii !== null && [ascii, domainToUnicode(ascii)].includes(domain.toLowerCase()) ? ascii : null;
}

/** Returns the mailboxes of a list that the grammar reads whole, or null if the record could show others. */
function strictList(field: RawField): Mailbox[] | null {
  const value = fieldValue(field);
  if (field.line.length > MAX_HEADER_VALUE_CHARS) return null;
  const list = readAddressList(value);
  const shown = mailboxes(value);
  return list !== null && list.length === shown.length ? shown : null;
}
