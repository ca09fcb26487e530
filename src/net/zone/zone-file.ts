import { type RecordData, textStrings, type ZoneRecord } from "./records.ts";

/** Formats a record as a line of a zone file (RFC 1035 §5.1), with absolute names. */
export function zoneLine(record: ZoneRecord): string {
  return `${absolute(record.name)} ${record.ttl} IN ${record.type} ${dataText(record)}`;
}

function absolute(name: string): string {
  return `${name}.`;
}

function dataText(record: RecordData): string {
  switch (record.type) {
    case "A":
    case "AAAA":
      return record.data;
    case "NS":
    case "CNAME":
      return absolute(record.data);
    case "TXT":
      return textStrings(record.data).map(quoted).join(" ");
    case "MX":
      return `${record.data.preference} ${absolute(record.data.exchange)}`;
    case "CAA":
      return `${record.data.flags} ${record.data.tag} ${quoted(Buffer.from(record.data.value))}`;
    case "HINFO":
      return `${quoted(Buffer.from(record.data.cpu))} ${quoted(Buffer.from(record.data.os))}`;
    case "SOA": {
      const { mname, rname, serial, refresh, retry, expire, minimum } = record.data;
      return `${absolute(mname)} ${absolute(rname)} ${serial} ${refresh} ${retry} ${expire} ${minimum}`;
    }
  }
}

/** Writes unprintable octets, quotes and backslashes as numbers, so that no value can end its string or line. */
function quoted(octets: Buffer): string {
  const text = octets
    .toString("latin1")
    .replace(/[^\x20-\x7e]|["\\]/g, (octet) => `\\${String(octet.charCodeAt(0)).padStart(3, "0")}`);
  return `"${text}"`;
}
