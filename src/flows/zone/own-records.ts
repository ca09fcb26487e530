import { isIPv4, isIPv6 } from "node:net";
import { isWithin, normalizeDomain } from "../../core/addresses.ts";
import { invalid } from "../../core/errors.ts";
import type { RecordData } from "../../net/zone/records.ts";
import type { OwnRecord, OwnRecordType } from "../../store/domains/domain-records.ts";

/** Maximum octets of a TXT record. A DKIM key of 4096 bits takes 740. */
export const MAX_TEXT_OCTETS = 2000;
/** Maximum octets of the value of a CAA record: one character-string. */
const MAX_CAA_OCTETS = 255;
/** RFC 8659 §4.1: only the first bit of the flags has a meaning. */
const CAA = /^(0|128) (issue|issuewild|iodef) "([\x20-\x7e]*)"$/;

type Content = Pick<OwnRecord, "type" | "value" | "priority">;

/** Returns a stored record of a domain's owner as the name server sends it. */
export function recordData({ type, value, priority }: Content): RecordData {
  switch (type) {
    case "MX":
      return { type, data: { preference: priority ?? 0, exchange: value } };
    case "CAA": {
      const [, flags = "0", tag = "issue", text = ""] = CAA.exec(value) ?? [];
      return {
        type,
        data: { flags: Number(flags), tag: tag as "issue" | "issuewild" | "iodef", value: text },
      };
    }
    default:
      return { type, data: value };
  }
}

/**
 * Returns a record's name in lower case and A-labels. Its first label may be `*` (RFC 4592).
 * @throws AppError 422 if it is not a name of the domain
 */
export function ownRecordName(text: string, domain: string): string {
  const wild = text.startsWith("*.");
  const name = normalizeDomain(wild ? text.slice(2) : text);
  if (name === null || !isWithin(name, domain))
    throw invalid("name", `This is not a full name at or below ${domain}.`);
  const full = wild ? `*.${name}` : name;
  if (normalizeDomain(full.replace("*", "a")) === null) throw invalid("name", "This name is too long.");
  return full;
}

/**
 * Returns a record's value in the form that is stored.
 * @throws AppError 422 if the type cannot have that value
 */
export function ownRecordValue(type: OwnRecordType, text: string): string {
  const value = VALUES[type].read(text);
  if (value === null) throw invalid("value", VALUES[type].expected);
  return value;
}

interface ValueRule {
  /** Returns the value as stored; null if it does not fit. */
  read(text: string): string | null;
  expected: string;
}

const VALUES: Readonly<Record<OwnRecordType, ValueRule>> = {
  A: {
    read: (text) => (isIPv4(text) ? text : null),
    expected: "An A record has an IPv4 address, such as 192.0.2.1.",
  },
  AAAA: {
    read: (text) => (isIPv6(text) && !text.includes("%") ? text.toLowerCase() : null),
    expected: "An AAAA record has an IPv6 address, such as 2001:db8::1.",
  },
  CNAME: { read: normalizeDomain, expected: "A CNAME record has a domain name, such as www.example.com." },
  MX: { read: normalizeDomain, expected: "An MX record has the name of a mail host; `priority` is a field." },
  TXT: {
    read: (text) =>
      text !== "" && Buffer.byteLength(text) <= MAX_TEXT_OCTETS && !/\p{Cc}/u.test(text) ? text : null,
    expected: `A TXT record has 1 to ${MAX_TEXT_OCTETS} octets of text in one line, without the quotes of a zone file.`,
  },
  CAA: {
    read: (text) => (CAA.test(text) && text.length <= MAX_CAA_OCTETS ? text : null),
    expected: 'A CAA record is like `0 issue "letsencrypt.org"`.',
  },
};
