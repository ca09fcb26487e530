import { addressKey, normalizeAddress } from "../../core/addresses.ts";
import { type RawField, fieldsOf, firstValue } from "../reading/raw-headers.ts";
import { storedLine } from "../stored-text.ts";

/** Recipients of one report that are read; a report is for one mail of ours, so for at most its recipients. */
export const MAX_REPORT_RECIPIENTS = 100;
/** Characters of a machine-readable report that are read. */
export const MAX_STATUS_CHARS = 256 * 1024;

/** Characters of one of its fields that are read. */
const MAX_FIELD_CHARS = 4096;

/** What a delivery status notification says of one recipient (RFC 3464 §2.3). */
export interface StatusRecipient {
  /** Lower case: failed, delayed, delivered, relayed, expanded, or what else stands there; "" where none does. */
  action: string;
  /** RFC 3463 code; null where none is given. */
  status: string | null;
  finalRecipient: string | null;
  originalRecipient: string | null;
  /** Without its type. */
  diagnosticCode: string | null;
  remoteMta: string | null;
}

/**
 * The recipients in a message/delivery-status part: blocks of fields with an empty line between them. Of more than are
 * read, the first ones, and those who are concerned.
 */
export function statusRecipients(text: string, concerned: string | null = null): StatusRecipient[] {
  const found: StatusRecipient[] = [];
  const wanted: StatusRecipient[] = [];
  for (const block of unbroken(text.slice(0, MAX_STATUS_CHARS)).split(/\r?\n[ \t]*\r?\n/)) {
    for (const fields of groupsOf(fieldsOf(block))) {
      if (!fields.some(({ name }) => RECIPIENT_FIELDS.has(name))) continue;
      const recipient = toRecipient(fields);
      if (concerned !== null && isFor(recipient, concerned)) wanted.push(recipient);
      else if (found.length < MAX_REPORT_RECIPIENTS) found.push(recipient);
    }
  }
  return [...wanted, ...found].slice(0, MAX_REPORT_RECIPIENTS);
}

/** Some servers do not fold a reply of several lines; none of them is a field, as a name has no spaces (RFC 5322 §2.2). */
function unbroken(text: string): string {
  return text.replace(/\r?\n[245]\d\d[ -]/g, " ");
}

/** Whether a report of an address is one of the recipient that is concerned, in any case of letters. */
export function isFor(
  { finalRecipient, originalRecipient }: Pick<StatusRecipient, "finalRecipient" | "originalRecipient">,
  concerned: string,
): boolean {
  const key = addressKey(concerned);
  return [finalRecipient, originalRecipient].some(
    (address) => address !== null && addressKey(address) === key,
  );
}

const RECIPIENT_FIELDS: ReadonlySet<string> = new Set([
  "final-recipient",
  "original-recipient",
  "action",
  "diagnostic-code",
]);

/** Fields of one recipient each: some servers leave out the empty line, so a recipient named again begins anew. */
function groupsOf(fields: readonly RawField[]): RawField[][] {
  const groups: RawField[][] = [[]];
  for (const field of fields) {
    const group = groups[groups.length - 1] ?? [];
    const again = /-recipient$/.test(field.name) && group.some(({ name }) => name === field.name);
    if (again) groups.push([field]);
    else group.push(field);
  }
  return groups;
}

function toRecipient(fields: readonly RawField[]): StatusRecipient {
  const value = (name: string): string | null => {
    // What stands here is kept, and shown on terminals: no NUL and no escape goes further.
    const text = storedLine(firstValue(fields, name) ?? "", MAX_FIELD_CHARS);
    return text === "" ? null : text;
  };
  return {
    action: /^[a-z-]+/.exec(value("action")?.toLowerCase() ?? "")?.[0] ?? "",
    status: /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(value("status") ?? "")?.[0] ?? null,
    finalRecipient: addressOf(value("final-recipient")),
    originalRecipient: addressOf(value("original-recipient")),
    // A fold leaves its spaces behind.
    diagnosticCode: withoutType(value("diagnostic-code"))?.replace(/\s+/g, " ") ?? null,
    remoteMta: withoutType(value("remote-mta")),
  };
}

/** The value behind `type;` (RFC 3464 §2.1.2). */
function withoutType(value: string | null): string | null {
  return value?.replace(/^[A-Za-z0-9-]+ ?; ?/, "").trim() ?? null;
}

/**
 * Both begin where a word and a row of marks begin, and nowhere within: tried from each character on, a long one without
 * its end takes the square of its length, which is minutes for a report field of 256 KiB.
 */
const ADDRESS =
  /(?:"[^"\r\n]{1,64}"|(?<![^\s<>,;:"'()[\]])[^\s<>,;:"'()[\]]+(?:(?<=[a-z])'(?=[a-z])[^\s<>,;:"'()[\]]+){0,2})@[A-Za-z0-9\u0080-\uffff][^\s<>,;:"'()[\]]*/i;
const END_OF_SENTENCE = /(?<![.!?！？。])[.!?！？。]+$/;

/**
 * The address in `rfc822; user@example.com`, with or without angle brackets and source route, in xtext (RFC 3461 §4)
 * and in the 7-bit form of addresses beyond ASCII (RFC 6533 §3) too.
 */
export function addressOf(value: string | null): string | null {
  const text = withoutType(value);
  if (text === null) return null;
  // X.400 gateways: "dda:SMTP=user@example.com".
  const plain = decoded(text).replace(/^<?@[^:\s]+:|^(?:.{0,80}?[:;/])?smtp=/i, "");
  const found = ADDRESS.exec(plain)?.[0];
  return found === undefined ? null : (normalizeAddress(found) ?? found.replace(END_OF_SENTENCE, ""));
}

/** `\x{E9}` is unitext of RFC 6533. `+40` is xtext, which is not told from a subaddress unless it hides the "@". */
function decoded(text: string): string {
  const unitext = text.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (whole, hex: string) => character(hex) ?? whole);
  if (unitext.includes("@")) return unitext;
  return unitext.replace(/\+([0-9A-F]{2})/g, (whole, hex: string) => character(hex) ?? whole);
}

function character(hex: string): string | null {
  const point = Number.parseInt(hex, 16);
  return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) ? String.fromCodePoint(point) : null;
}
