/** Data of a record, by type. TXT data may have any length; it is split into strings when encoded. */
export type RecordData =
  | { type: "A" | "AAAA" | "NS" | "CNAME"; data: string }
  | { type: "TXT"; data: string }
  | { type: "MX"; data: { preference: number; exchange: string } }
  | { type: "SOA"; data: SoaData }
  | { type: "CAA"; data: { flags: number; tag: "issue" | "issuewild" | "iodef"; value: string } }
  | { type: "HINFO"; data: { cpu: string; os: string } };

/** A record of class IN. Names are lower case without final dot; the root is "". `ttl` is in seconds. */
export type ZoneRecord = RecordData & { name: string; ttl: number };

/** RFC 1035 §3.3.13. `minimum` limits the caching of negative answers (RFC 2308 §4). Times in seconds. */
export interface SoaData {
  mname: string;
  rname: string;
  serial: number;
  refresh: number;
  retry: number;
  expire: number;
  minimum: number;
}

/** RFC 1035 §4.1.1; 9: RFC 8945 §3, RFC 5936 §2.2.1; codes above 15: RFC 6891 §9. */
export const RCODE = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
  notAuthorized: 9,
  badVersion: 16,
} as const;

/** Octets of one character-string (RFC 1035 §3.3). */
const STRING_OCTETS = 255;

/** Splits a TXT record's text into character-strings, at least one (RFC 1035 §3.3.14). */
export function textStrings(text: string): Buffer[] {
  const octets = Buffer.from(text);
  const strings = [octets.subarray(0, STRING_OCTETS)];
  for (let at = STRING_OCTETS; at < octets.length; at += STRING_OCTETS)
    strings.push(octets.subarray(at, at + STRING_OCTETS));
  return strings;
}
