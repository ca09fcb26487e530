import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { toolPath } from "../support/npm-tool.ts";
import { reply } from "../../src/smtp/session/reply.ts";
import { Client, startServer } from "./server-harness.ts";

/** nodemailer's server: an independent reading of the same RFCs. */
const ENTRY = toolPath({ name: "smtp-server", version: "3.21.6", bin: "dist/esm/smtp-server.js" });
const missing = !existsSync(ENTRY);
const MAX = 1000;

/** The part of the package that this test uses. */
interface OtherServer {
  server: Server;
  listen(port: number, host: string, listening: () => void): void;
  close(closed: () => void): void;
}
interface OtherModule {
  SMTPServer: new (options: object) => OtherServer;
}
type Callback = (error?: Error | null, text?: string) => void;

class Refusal extends Error {
  responseCode = 550;
}

/** The other server with the same rules: mailboxes at no.example do not exist. */
async function startOther(): Promise<{ port: number; stop(): Promise<void> }> {
  // A package without types. The part used is declared above.
  const { SMTPServer } = (await import(ENTRY)) as OtherModule;
  const other = new SMTPServer({
    authOptional: true,
    disabledCommands: ["AUTH"],
    disableReverseLookup: true,
    size: MAX,
    logger: false,
    onRcptTo: ({ address }: { address: string }, _session: unknown, done: Callback) =>
      done(address.endsWith("@no.example") ? new Refusal("No such mailbox") : null),
    onData(stream: NodeJS.ReadableStream & { sizeExceeded: boolean }, _session: unknown, done: Callback) {
      stream.resume();
      stream.on("end", () => done(stream.sizeExceeded ? new Refusal("Too large") : null, "Taken"));
    },
  });
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
  // A TCP server's address is never a path.
  const { port } = other.server.address() as AddressInfo;
  return { port, stop: () => new Promise((closed) => other.close(() => closed())) };
}

const HELLO = "EHLO client.example";
const MAIL = "MAIL FROM:<a@b.example>";
const RCPT = "RCPT TO:<c@d.example>";
const BODY = "Subject: x\r\n\r\nhello\r\n.";

/** Sends each line when the one before it has its reply. A message is one line. */
const DIALOGUES: Record<string, readonly string[]> = {
  "a message": [HELLO, MAIL, RCPT, "DATA", BODY, "QUIT"],
  "two messages": [HELLO, MAIL, RCPT, "DATA", BODY, MAIL, RCPT, "DATA", BODY, "QUIT"],
  HELO: ["HELO client.example", MAIL, RCPT, "DATA", BODY, "QUIT"],
  "lower case": [
    "ehlo client.example",
    "mail from:<a@b.example>",
    "rcpt to:<c@d.example>",
    "data",
    BODY,
    "quit",
  ],
  "the null sender": [HELLO, "MAIL FROM:<>", RCPT, "DATA", BODY],
  "several recipients, one refused": [
    HELLO,
    MAIL,
    RCPT,
    "RCPT TO:<x@no.example>",
    "RCPT TO:<e@f.example>",
    "DATA",
    BODY,
  ],
  "all recipients refused": [HELLO, MAIL, "RCPT TO:<x@no.example>", "DATA"],
  "RCPT before MAIL": [HELLO, RCPT],
  "DATA before MAIL": [HELLO, "DATA"],
  "DATA before RCPT": [HELLO, MAIL, "DATA"],
  "MAIL before EHLO": [MAIL],
  "MAIL twice": [HELLO, MAIL, MAIL],
  RSET: [HELLO, MAIL, RCPT, "RSET", "DATA", MAIL, RCPT, "DATA", BODY],
  "EHLO again ends a transaction": [HELLO, MAIL, RCPT, HELLO, "DATA"],
  "NOOP, HELP, VRFY": ["NOOP", "HELP", "VRFY a@b.example"],
  "unknown commands": ["WHAT", "XYZZY a b"],
  "EHLO without a name": ["EHLO"],
  "parameters of MAIL": [HELLO, `${MAIL} SIZE=100 BODY=8BITMIME`, RCPT],
  SMTPUTF8: [HELLO, `${MAIL} SMTPUTF8`, RCPT],
  "announced as too large": [HELLO, `${MAIL} SIZE=${MAX + 1}`],
  "too large": [HELLO, MAIL, RCPT, "DATA", `${"x".repeat(MAX)}\r\n.`, "NOOP"],
  dots: [HELLO, MAIL, RCPT, "DATA", "..\r\n.x\r\n.", "NOOP"],
  "malformed paths": [
    HELLO,
    "MAIL FROM:a@b.example",
    "MAIL FROM:<a@b.example",
    "MAIL a@b.example",
    "MAIL FROM:<a@b c>",
  ],
  "malformed recipients": [
    HELLO,
    MAIL,
    "RCPT TO:<>",
    "RCPT TO:c@d.example",
    "RCPT c@d.example",
    "RCPT TO:<c@d e>",
  ],
  "an unknown parameter": [HELLO, `${MAIL} WHAT=1`],
  "quoted local parts": [HELLO, 'MAIL FROM:<"a b"@b.example>', 'RCPT TO:<"c d"@d.example>'],
  "address literals": [HELLO, "MAIL FROM:<a@[192.0.2.1]>", "RCPT TO:<c@[IPv6:2001:db8::1]>"],
  "STARTTLS with an argument": [HELLO, "STARTTLS now"],
};

/** Differences between the two, and why ours stays. */
const DIFFERENCES: Record<string, { ours: string; theirs: string; reason: string }> = {
  "an unknown parameter": { ours: "225", theirs: "222", reason: "RFC 5321 §4.1.1.11 has it refused, 555" },
  "quoted local parts": {
    ours: "2222",
    theirs: "2255",
    reason: "RFC 5321 §4.1.2 allows spaces between quotes",
  },
};

/** First digits of the replies, greeting first. */
async function play(port: number, lines: readonly string[]): Promise<string> {
  const client = await Client.connect(port, false);
  let digits = (await client.reply()).slice(0, 1);
  for (const line of lines) digits += (await client.say(line)).slice(0, 1) || "-";
  client.destroy();
  return digits;
}

describe.skipIf(missing)(
  "nodemailer's smtp-server gives the same replies (skipped if it is not installed)",
  () => {
    let server: Awaited<ReturnType<typeof startServer>>;
    let other: Awaited<ReturnType<typeof startOther>>;

    beforeAll(async () => {
      other = await startOther();
      server = await startServer(
        {
          recipient: async (address) =>
            address.endsWith("@no.example") ? reply(550, "5.1.1", "No such mailbox") : null,
        },
        { maxMessageBytes: MAX },
      );
    });
    afterAll(async () => {
      await other.stop();
      await server[Symbol.asyncDispose]();
    });

    for (const [name, lines] of Object.entries(DIALOGUES)) {
      const known = DIFFERENCES[name];
      test(known === undefined ? name : `${name}: not so, ${known.reason}`, async () => {
        const [ours, theirs] = [await play(server.port, lines), await play(other.port, lines)];
        expect({ ours, theirs }).toEqual({ ours: known?.ours ?? theirs, theirs: known?.theirs ?? theirs });
      });
    }
  },
);
