import ipaddr from "ipaddr.js";

/** First octets of a PROXY protocol version 2 header (haproxy's proxy-protocol.txt §2.2). */
const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const FIXED_OCTETS = 16;
/** Room for IPv6 addresses (36 octets) and the proxy's own fields. */
export const MAX_PROXY_HEADER_OCTETS = FIXED_OCTETS + 2048;

/** Octets of one address, by the 14th octet of the header: TCP over IPv4 and TCP over IPv6. */
const ADDRESS_OCTETS: ReadonlyMap<number, number> = new Map([
  [0x11, 4],
  [0x21, 16],
]);

/**
 * Result of reading a header: its length and the client's address, which is null if the proxy connects for itself (a
 * health check). `more`: the header is incomplete. `bad`: the octets are not a valid header.
 */
export type ProxyHeader =
  | { kind: "more" }
  | { kind: "bad" }
  | { kind: "header"; octets: number; ip: string | null };

/** Reads a PROXY protocol version 2 header at the start of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return { kind: "bad" };
  if (bytes.length < FIXED_OCTETS) return { kind: "more" };
  const octets = FIXED_OCTETS + bytes.readUInt16BE(14);
  const command = bytes[12] ?? 0;
  if (octets > MAX_PROXY_HEADER_OCTETS || command >> 4 !== 2 || (command & 15) > 1) return { kind: "bad" };
  if (bytes.length < octets) return { kind: "more" };
  // Command 0 is LOCAL: there is no client, and the addresses are skipped.
  if ((command & 15) === 0) return { kind: "header", octets, ip: null };
  const size = ADDRESS_OCTETS.get(bytes[13] ?? 0);
  if (size === undefined || octets < FIXED_OCTETS + 2 * size + 4) return { kind: "bad" };
  const address = [...bytes.subarray(FIXED_OCTETS, FIXED_OCTETS + size)];
  return { kind: "header", octets, ip: ipaddr.process(ipaddr.fromByteArray(address).toString()).toString() };
}
