import { type RecordData, textStrings, type ZoneRecord } from "./records.ts";

/** A record as a line of a zone file (RFC 1035 §5.1), all names absolute. */
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
      return absolute(record.data);
    case "TXT":
      return textStrings(record.data).map(quoted).join(" ");
    case "MX":
      return `${record.data.preference} ${absolute(record.data.exchange)}`;
    case "HINFO":
      return `${quoted(Buffer.from(record.data.cpu))} ${quoted(Buffer.from(record.data.os))}`;
    case "SOA": {
      const { mname, rname, serial, refresh, retry, expire, minimum } = record.data;
      return `${absolute(mname)} ${absolute(rname)} ${serial} ${refresh} ${retry} ${expire} ${minimum}`;
    }
  }
}

/** What is not plain text is written by its number, so that no value can end its string or its line. */
function quoted(octets: Buffer): string {
  const text = octets
    .toString("latin1")
    .replace(/[^\x20-\x7e]|["\\]/g, (octet) => `\\${String(octet.charCodeAt(0)).padStart(3, "0")}`);
  return `"${text}"`;
}
