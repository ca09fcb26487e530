import { addressKey, normalizeAddress } from "../../core/addresses.ts";
import { type RawField, fieldsOf, firstValue } from "../reading/raw-headers.ts";
import { folded } from "./diagnostic.ts";
import { storedLine } from "../text/stored-text.ts";

/**
 * Maximum number of recipients read from one report. A report is about one message of ours, so about its recipients
 * at most.
 */
export const MAX_REPORT_RECIPIENTS = 100;
/** Maximum characters of a machine-readable report that are read. */
export const MAX_STATUS_CHARS = 256 * 1024;

/** Maximum characters of one of its fields that are read. */
const MAX_FIELD_CHARS = 4096;

/** The part of a delivery status notification about one recipient (RFC 3464 §2.3). */
export interface StatusRecipient {
  /** Lower case: failed, delayed, delivered, relayed, expanded, or any other word; "" if there is none. */
  action: string;
  /** RFC 3463 code; null if there is none. */
  status: string | null;
  finalRecipient: string | null;
  originalRecipient: string | null;
  /** Without its type. */
  diagnosticCode: string | null;
  remoteMta: string | null;
}

/**
 * Returns the recipients of a message/delivery-status part: blocks of fields with an empty line between them. Beyond
 * the limit it keeps the first ones and the one concerned.
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

/**
 * Joins the lines of a reply that a server did not fold. Such a line is no field, because a field name has no spaces
 * (RFC 5322 §2.2).
 */
function unbroken(text: string): string {
  return text.replace(/\r?\n[245]\d\d[ -]/g, " ");
}

/** Returns whether a report is about the recipient concerned, in any case of letters. */
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
  "x-supplementary-info",
]);

/**
 * Returns the fields of each recipient. Some servers leave out the empty line, so a second recipient field starts a
 * new group.
 */
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
    // The value is stored, and shown on terminals: NUL and escapes are removed.
    const text = folded(storedLine(firstValue(fields, name) ?? "", MAX_FIELD_CHARS));
    return text === "" ? null : text;
  };
  const extra = supplementary(value("x-supplementary-info") ?? otherReason(fields, value));
  return {
    action: /^[a-z-]+/.exec(value("action")?.toLowerCase() ?? "")?.[0] ?? "",
    status: /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(value("status") ?? "")?.[0] ?? extra.status,
    finalRecipient: addressOf(value("final-recipient")),
    originalRecipient: addressOf(value("original-recipient")),
    diagnosticCode: withoutType(value("diagnostic-code")) || extra.diagnosticCode,
    remoteMta: withoutType(value("remote-mta")) ?? extra.remoteMta,
  };
}

/** Fields that do not tell why a message was not delivered (RFC 3464 §2). */
const NO_REASONS =
  /recipient$|^(?:action|status|diagnostic-code|remote-mta|reporting-mta|received-from-mta|dsn-gateway|final-log-id|original-envelope-id|x-display-name)$|-date$|-until$|-id$/;
/** Names of the fields that servers have invented for it. */
const REASON_NAME = /diagnos|reason|response|reply|supplement|error|explanation|bounce-?text/;
const REPLY_IN_IT = /(?:^|[^\d.\w-])[45]\d\d[ -]|(?:^|[^\d.])[45]\.\d{1,3}\.\d{1,3}(?![\d.])/;

/** Returns the value of a field that has the reason under another name. */
function otherReason(fields: readonly RawField[], value: (name: string) => string | null): string | null {
  const others = fields.map(({ name }) => name).filter((name) => !NO_REASONS.test(name));
  const named = others.find((name) => REASON_NAME.test(name) && value(name) !== null);
  const found = others.find((name) => REPLY_IN_IT.test(value(name) ?? "")) ?? named;
  return found === undefined ? null : value(found);
}

/** Reads the field in which Exchange gives the reply if it has no Diagnostic-Code: `<mx.x.test #5.1.1 smtp;550 …>`. */
function supplementary(
  value: string | null,
): Pick<StatusRecipient, "status" | "diagnosticCode" | "remoteMta"> {
  const bare = (value ?? "").replace(/^< ?|>$/g, "").trim();
  const [, host = "", status = "", reply = ""] =
    /^([^\s#;]{1,255})? ?#(\d\.\d{1,3}\.\d{1,3})(?: (.+))?$/.exec(bare) ?? ["", "", "", bare];
  const filled = (text: string): string | null => (text === "" ? null : text);
  return {
    status: filled(status),
    diagnosticCode: filled(withoutType(reply) ?? ""),
    remoteMta: filled(host),
  };
}

/** Returns the value after `type;` (RFC 3464 §2.1.2). */
function withoutType(value: string | null): string | null {
  return value?.replace(/^[A-Za-z0-9-]+ ?; ?/, "").trim() ?? null;
}

/**
 * Patterns that begin only at the start of a word or a row of marks. Otherwise a long word without an end takes time
 * in the square of its length: minutes for a field of 256 KiB.
 */
const ADDRESS =
  /(?:"[^"\r\n]{1,254}"|(?<![^\s<>,;:"'()[\]])[^\s<>,;:"'()[\]]+(?:(?<=[a-z])'(?=[a-z])[^\s<>,;:"'()[\]]+){0,2})@[A-Za-z0-9\u0080-\uffff][^\s<>,;:"'()[\]]*/i;
const END_OF_SENTENCE = /(?<![.!?！？。])[.!?！？。]+$/;

/**
 * Returns the address in `rfc822; user@example.com`, with or without angle brackets and source route. It also reads
 * xtext (RFC 3461 §4) and the 7-bit form of addresses beyond ASCII (RFC 6533 §3).
 */
export function addressOf(value: string | null): string | null {
  const text = withoutType(value);
  if (text === null) return null;
  // X.400 gateways: "dda:SMTP=user@example.com".
  const plain = decoded(text).replace(/^<?@[^:\s]+:|^(?:.{0,80}?[:;/])?smtp=/i, "");
  const found = ADDRESS.exec(plain)?.[0];
  return found === undefined ? null : (normalizeAddress(found) ?? found.replace(END_OF_SENTENCE, ""));
}

/**
 * Decodes unitext, `\x{E9}` (RFC 6533), and xtext, `+40`. Xtext looks like a subaddress, so it counts only if it
 * hides the "@".
 */
function decoded(text: string): string {
  const unitext = text.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (whole, hex: string) => character(hex) ?? whole);
  if (unitext.includes("@")) return unitext;
  return unitext.replace(/\+([0-9A-F]{2})/g, (whole, hex: string) => character(hex) ?? whole);
}

function character(hex: string): string | null {
  const point = Number.parseInt(hex, 16);
  return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) ? String.fromCodePoint(point) : null;
}
