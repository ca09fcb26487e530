import { randomInt } from "node:crypto";
import { isIPv4 } from "node:net";
import { AUTHORITATIVE_ANSWER, encode } from "dns-packet";
import type { Clock } from "../../core/time/clock.ts";
import { HEADER_OCTETS } from "../dns/packet-layout.ts";
import { openUdp } from "../dns/exchange.ts";
import type { SoaRecord } from "./answer.ts";
import { signatureOf } from "./query.ts";
import { RCODE } from "./records.ts";
import type { Secondary } from "./transfer.ts";
import { signQuery, TSIG_ERROR, type TsigKey, verify } from "./tsig.ts";

/** Time to wait for the acknowledgement of one NOTIFY. */
export const NOTIFY_TIMEOUT_MS = 5000;
/** RFC 1996 §3.7. */
const NOTIFY = 4 << 11;
const OPCODE_AND_RESPONSE = 0xf800;
const RESPONSE = 0x8000;
const RCODE_MASK = 0x0f;
const MAX_ID = 0x10000;

/** A notice to a secondary that a zone has changed. */
export interface Notice {
  secondary: Secondary;
  key: TsigKey;
  soa: SoaRecord;
  /** Addresses that our name server listens on. The notice comes from one of them, because secondaries check that. */
  hosts: readonly string[];
}

/**
 * Sends a NOTIFY (RFC 1996) once, signed, by UDP. Never rejects.
 * @returns null if the secondary has acknowledged it, else why not, for operators
 */
export async function sendNotify(clock: Clock, notice: Notice): Promise<string | null> {
  const { secondary, key, soa } = notice;
  const id = randomInt(MAX_ID);
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const { octets, mac } = signQuery(encodeNotify(id, soa), key, Math.floor(clock.now() / 1000));
  const received = (packet: Buffer): void => {
    if (packet.length < HEADER_OCTETS || packet.readUInt16BE(0) !== id) return;
    if ((packet.readUInt16BE(2) & OPCODE_AND_RESPONSE) !== (NOTIFY | RESPONSE)) return;
    resolve(faultOf(packet, key, mac, Math.floor(clock.now() / 1000)));
  };
  const unreachable = (): void => resolve("it cannot be reached");
  const socket = await openUdp(secondary, received, unreachable, sourceFor(notice));
  if (socket === null) return "it cannot be reached";
  const cancel = clock.after(NOTIFY_TIMEOUT_MS, () => resolve("it does not answer"));
  try {
    socket.send(octets);
    return await promise;
  } catch {
    return "it cannot be reached";
  } finally {
    cancel();
    socket.close();
  }
}

/** The new SOA is only a hint: the secondary asks for it (RFC 1996 §3.7). */
function encodeNotify(id: number, soa: SoaRecord): Buffer {
  return encode({
    type: "query",
    id,
    flags: NOTIFY | AUTHORITATIVE_ANSWER,
    questions: [{ name: soa.name, type: "SOA", class: "IN" }],
    answers: [soa],
  });
}

/** Returns the address of ours that a notice comes from; undefined if the kernel may choose. */
function sourceFor({ secondary, hosts }: Notice): string | undefined {
  const isOfFamily = (host: string): boolean => isIPv4(host) === isIPv4(secondary.ip);
  return hosts.find((host) => isOfFamily(host) && host !== "0.0.0.0" && host !== "::");
}

const SIGNATURE_FAULTS: Readonly<Record<number, string>> = {
  [TSIG_ERROR.badSignature]: "the secret of the key differs there (BADSIG)",
  [TSIG_ERROR.badKey]: "it does not know the key (BADKEY)",
  [TSIG_ERROR.badTime]: "its clock differs by more than five minutes (BADTIME)",
  [TSIG_ERROR.badTruncation]: "it wants a longer signature (BADTRUNC)",
};
const RCODE_FAULTS: Readonly<Record<number, string>> = {
  [RCODE.refused]: "it refuses the notice: the zone must allow it from our address with this key",
  [RCODE.notAuthorized]: "it does not have the zone, or does not allow the notice from our address",
  [RCODE.notImplemented]: "it does not know NOTIFY",
};

/** Returns what is wrong with an answer; null if it acknowledges the notice. */
function faultOf(packet: Buffer, key: TsigKey, mac: Buffer, now: number): string | null {
  const rcode = packet.readUInt16BE(2) & RCODE_MASK;
  const signature = signatureOf(packet);
  const there = SIGNATURE_FAULTS[signature?.error ?? 0];
  if (there !== undefined) return there;
  if (rcode !== RCODE.noError) return RCODE_FAULTS[rcode] ?? `it answers with code ${rcode}`;
  if (signature === null) return "its answer is not signed";
  return SIGNATURE_FAULTS[verify([key], signature, now, mac).error] ?? null;
}
