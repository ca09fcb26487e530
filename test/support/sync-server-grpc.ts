import { FRAME, type Log } from "./sync-server-log.ts";

/** Maximum number of frames in one answer. */
const BATCH = 256;
/** Identifies the log and its session, fixed for one test. */
const LOG_ID = "11111111-2222-4333-8444-555555555555";

/**
 * Answers sqld's replication protocol, gRPC-Web over HTTP/1.1. `Hello` returns the log's id and last frame.
 * `BatchLogEntries` returns frames from a number on. Returns null for any other call.
 */
export function grpcAnswer(log: Log, path: string, body: Buffer): { name: string; body: Buffer } | null {
  const name = /^\/wal_log\.ReplicationLog\/(\w+)$/.exec(path)?.[1];
  if (name === "Hello") return { name, body: answered(hello(log)) };
  if (name === "BatchLogEntries") return { name, body: answered(entries(log, firstField(body.subarray(5)))) };
  return null;
}

/** The answer of a server that makes a snapshot of its log, and cannot give frames until it is made. */
export function noFrames(): Buffer {
  return part(0x80, Buffer.from("grpc-status:14\r\ngrpc-message:snapshot not found\r\n"));
}

function hello(log: Log): Buffer {
  const committed = log.committed();
  const id = Buffer.from(LOG_ID);
  const newest = committed > 0 ? [numberField(5, committed - 1)] : [];
  return Buffer.concat([bytesField(1, id), bytesField(3, id), bytesField(4, id), ...newest]);
}

function entries(log: Log, from: number): Buffer {
  // This protocol numbers frames from 0, SQLite's log from 1.
  const frames = log.frames(from + 1, from + 1 + BATCH);
  const fields: Buffer[] = [];
  for (let at = 0; at * FRAME < frames.length; at++) {
    const frame = frames.subarray(at * FRAME, (at + 1) * FRAME);
    const header = Buffer.alloc(24);
    header.writeBigUInt64LE(BigInt(from + at), 0);
    header.writeUInt32LE(frame.readUInt32BE(0), 16);
    header.writeUInt32LE(frame.readUInt32BE(4), 20);
    fields.push(bytesField(1, bytesField(1, Buffer.concat([header, frame.subarray(24)]))));
  }
  return Buffer.concat(fields);
}

/** A message and the trailers, each prefixed with its flag and length. */
function answered(message: Buffer): Buffer {
  return Buffer.concat([part(0, message), part(0x80, Buffer.from("grpc-status:0\r\n"))]);
}

function part(flag: number, bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function varint(value: number): Buffer {
  const octets: number[] = [];
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) octets.push((left % 0x80) | 0x80);
  return Buffer.from([...octets, left]);
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
}

function numberField(field: number, value: number): Buffer {
  return Buffer.concat([varint(field * 8), varint(value)]);
}

/** Returns the first field of a message, a number, or 0 if it is absent. */
function firstField(message: Buffer): number {
  let value = 0;
  for (let at = 1; at < message.length; at++) {
    const octet = message[at] ?? 0;
    value += (octet % 0x80) * 0x80 ** (at - 1);
    if (octet < 0x80) break;
  }
  return value;
}
