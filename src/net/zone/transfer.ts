import ipaddr from "ipaddr.js";
import { createTaskLimit } from "../../core/concurrency/admission.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { SoaRecord } from "./answer.ts";
import { encodeTransferMessage, transferredRecord } from "./encode-reply.ts";
import type { Query } from "./query.ts";
import type { ZoneRecord } from "./records.ts";
import { type Signature, streamSigner, type TsigKey } from "./tsig.ts";

/** A name server that copies our zones. */
export interface Secondary {
  /** The address that NOTIFY goes to, and from which it asks for transfers. */
  ip: string;
  /** The port that NOTIFY goes to. */
  port: number;
  keyName: string;
}

/** A zone as it is now, in whole. */
export interface WholeZone {
  /** The serial was read before the records, so they are never older than it. */
  soa: SoaRecord;
  /** Yields all records except the SOA, piece by piece. */
  records(): AsyncIterable<readonly ZoneRecord[]>;
}

/** The clients that may copy our zones, and the reader of zones. */
export interface Transfers {
  keys: readonly TsigKey[];
  secondaries: readonly Secondary[];
  /** Reads a zone; null if we hold no zone of that name. Rejects if that is unknown now. */
  open(origin: string): Promise<WholeZone | null>;
}

/** Sends a message. Resolves with false if the connection is gone, else when the client has taken it. */
export type SendMessage = (message: Buffer) => Promise<boolean>;

/** Transfers at a time, and those that may wait. */
const TRANSFERS = 8;
const MAX_WAITING_TRANSFERS = 512;
/** Octets of records in a message. With the longest record, question and signature it stays below 64 KiB. */
const MESSAGE_OCTETS = 48 * 1024;

/** Returns true if a client with that address and key is one of the secondaries. */
export function isSecondary({ secondaries }: Transfers, client: string, key: TsigKey): boolean {
  if (!ipaddr.isValid(client)) return false;
  const ip = ipaddr.process(client).toString();
  return secondaries.some((one) => one.keyName === key.name && ipaddr.process(one.ip).toString() === ip);
}

/** Makes the function that sends whole zones (RFC 5936), a limited number at a time. It rejects if it cannot. */
export function createSender(clock: Clock) {
  const runTransfer = createTaskLimit(TRANSFERS, MAX_WAITING_TRANSFERS);
  return async (zone: WholeZone, request: SignedQuery, send: SendMessage): Promise<void> => {
    const sent = await runTransfer(async () => {
      await sendZone(clock, zone, request, send);
      return true;
    });
    if (sent === null) throw new Error("too many transfers wait already");
  };
}

/** A query of a secondary. */
export interface SignedQuery {
  query: Query;
  signature: Signature;
  key: TsigKey;
}

async function sendZone(
  clock: Clock,
  zone: WholeZone,
  { query, signature, key }: SignedQuery,
  send: SendMessage,
): Promise<void> {
  const sign = streamSigner(signature, key);
  const flush = async (records: readonly Buffer[]): Promise<boolean> => {
    await yieldToEventLoop();
    return send(sign(encodeTransferMessage(query, records), Math.floor(clock.now() / 1000)));
  };
  const soa = transferredRecord(query.name, zone.soa);
  let records = [soa];
  let octets = soa.length;
  for await (const page of zone.records())
    for (const record of page) {
      const encoded = transferredRecord(query.name, record);
      if (octets + encoded.length > MESSAGE_OCTETS) {
        if (!(await flush(records))) return;
        records = [];
        octets = 0;
      }
      records.push(encoded);
      octets += encoded.length;
    }
  await flush([...records, soa]);
}
