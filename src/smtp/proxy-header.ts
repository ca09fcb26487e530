import ipaddr from "ipaddr.js";

/** The signature that begins a header of PROXY protocol version 2 (haproxy's proxy-protocol.txt §2.2). */
const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const FIXED_OCTETS = 16;
/** Octets of addresses and further fields: those of IPv6 take 36, a proxy's own notes the rest. */
export const MAX_PROXY_HEADER_OCTETS = FIXED_OCTETS + 2048;

/** Octets of one address by the family in the header's 14th octet: TCP over IPv4, TCP over IPv6. */
const ADDRESS_OCTETS: ReadonlyMap<number, number> = new Map([
  [0x11, 4],
  [0x21, 16],
]);

/**
 * What the octets so far say: how many the header has, and the client's address, null where the proxy speaks for itself
 * (a health check). `more`: the header has not come whole. `bad`: no such header can begin so.
 */
export type ProxyHeader =
  | { kind: "more" }
  | { kind: "bad" }
  | { kind: "header"; octets: number; ip: string | null };

/** Reads a header of PROXY protocol version 2 at the start of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return { kind: "bad" };
  if (bytes.length < FIXED_OCTETS) return { kind: "more" };
  const octets = FIXED_OCTETS + bytes.readUInt16BE(14);
  const command = bytes[12] ?? 0;
  if (octets > MAX_PROXY_HEADER_OCTETS || command >> 4 !== 2 || (command & 15) > 1) return { kind: "bad" };
  if (bytes.length < octets) return { kind: "more" };
  // Command 0 is LOCAL: no client stands behind the connection, and what follows is to be skipped.
  if ((command & 15) === 0) return { kind: "header", octets, ip: null };
  const size = ADDRESS_OCTETS.get(bytes[13] ?? 0);
  if (size === undefined || octets < FIXED_OCTETS + 2 * size + 4) return { kind: "bad" };
  const address = [...bytes.subarray(FIXED_OCTETS, FIXED_OCTETS + size)];
  return { kind: "header", octets, ip: ipaddr.process(ipaddr.fromByteArray(address).toString()).toString() };
}
