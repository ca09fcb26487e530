/** Composes, signs and sends with nodemailer's pool and stores nothing. Prints one JSON line. */
import { generateKeyPairSync } from "node:crypto";
import { createTransport } from "nodemailer";
import { HTML, recipient, TEXT } from "./message.ts";

export interface FloorOutboundOptions {
  port: number;
  /** Messages sent before the measured ones. */
  warm: number;
  count: number;
  connections: number;
  domains: number;
  from: string;
}

export interface FloorOutboundResult {
  seconds: number;
  /** Resident bytes at the end. */
  memory: number;
  /** Microseconds. */
  processor: number;
}

/** Messages handed to nodemailer at a time: enough to keep all its connections busy. */
const IN_HAND = 100;

const options: FloorOutboundOptions = JSON.parse(process.argv[2] ?? "{}");
const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
const transport = createTransport({
  pool: true,
  host: "127.0.0.1",
  port: options.port,
  ignoreTLS: true,
  maxConnections: options.connections,
  maxMessages: Infinity,
  dkim: { domainName: options.from.split("@")[1] ?? "", keySelector: "bench", privateKey },
});
let next = 0;
async function sendOn(until: number): Promise<void> {
  while (next < until) {
    const to = recipient(next++, options.domains);
    const mail = {
      from: { name: "Bench", address: options.from },
      to,
      subject: "Measured",
      html: HTML,
      text: TEXT,
    };
    const { accepted } = await transport.sendMail(mail);
    if (accepted.length !== 1) throw new Error(`${to} was not accepted`);
  }
}
const send = (until: number) => Promise.all(Array.from({ length: IN_HAND }, () => sendOn(until)));
await send(options.warm);
const begin = performance.now();
const before = process.cpuUsage();
await send(options.warm + options.count);
const seconds = (performance.now() - begin) / 1000;
transport.close();
const { user, system } = process.cpuUsage(before);
const memory = process.memoryUsage().rss;
const result: FloorOutboundResult = { seconds, memory, processor: user + system };
console.log(JSON.stringify(result));
process.exit(0);
