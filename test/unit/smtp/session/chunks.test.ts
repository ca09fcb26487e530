import { describe, expect, test } from "bun:test";
import { ChunkReader } from "../../../../src/smtp/session/chunks.ts";
import type { Action } from "../../../../src/smtp/session/actions.ts";
import { Session } from "../../../../src/smtp/session/session.ts";
import { reply } from "../../../../src/smtp/session/reply.ts";

const MAX = 100;

/** Result of the pieces, each its own chunk, the last one marked LAST. */
function read(pieces: readonly string[]): string {
  const reader = new ChunkReader(MAX);
  for (const [at, piece] of pieces.entries()) {
    reader.feed(Buffer.from(piece, "latin1"));
    const end = reader.end(at === pieces.length - 1);
    if (end !== null) return "fault" in end ? end.fault : Buffer.from(end.raw).toString("latin1");
  }
  return "unfinished";
}

describe("chunks make one message", () => {
  const rows: [name: string, pieces: string[], message: string][] = [
    ["one chunk", ["a\r\nb\r\n"], "a\r\nb\r\n"],
    ["a CRLF in two chunks", ["a\r", "\nb\r\n"], "a\r\nb\r\n"],
    ["dots are text", [".\r\n..\r\n.\r\n"], ".\r\n..\r\n.\r\n"],
    ["no line end at the end", ["a"], "a\r\n"],
    ["nothing", [""], ""],
    ["an empty last chunk", ["a\r\n", ""], "a\r\n"],
    ["a bare LF", ["a\nb\r\n"], "bareLineEnd"],
    ["a bare LF after a CRLF", ["a\r\nb\n"], "bareLineEnd"],
    ["a bare CR", ["a\rb\r\n"], "bareLineEnd"],
    ["a chunk that ends in a bare CR", ["a\r", "b\r\n"], "bareLineEnd"],
    ["a message that ends in a CR", ["a\r"], "bareLineEnd"],
    ["CR CR LF", ["a\r\r\n"], "bareLineEnd"],
    ["LF that begins a message", ["\na\r\n"], "bareLineEnd"],
    ["a NUL", ["a\0\r\n"], "nul"],
    ["the limit", ["x".repeat(MAX - 2), "\r\n"], `${"x".repeat(MAX - 2)}\r\n`],
    ["the limit, and no line end at the end", ["x".repeat(MAX)], `${"x".repeat(MAX)}\r\n`],
    ["one octet past it, and no line end at the end", ["x".repeat(MAX + 1)], "tooLarge"],
    ["one octet past it", ["x".repeat(MAX - 1), "\r\n"], "tooLarge"],
    ["a fault shows before the last chunk", ["a\nb", "never read"], "bareLineEnd"],
  ];
  test.each(rows)("%s", (_name, pieces, message) => {
    expect(read(pieces)).toBe(message);
    const octets = [...pieces.join("")];
    if (message !== "bareLineEnd" || pieces.length === 1) expect(read([...octets, ""])).toBe(message);
  });

  test.each([64 * 1024, 1024 * 1024])("a line end fits after a message of the limit, %i octets", (max) => {
    const reader = new ChunkReader(max);
    reader.feed(Buffer.alloc(max, "x"));
    const end = reader.end(true);
    expect(end !== null && "raw" in end && Buffer.from(end.raw.subarray(max)).toString()).toBe("\r\n");
  });

  test("nothing is kept of a refused message", () => {
    const reader = new ChunkReader(MAX);
    reader.feed(Buffer.from("text"));
    expect(reader.held).toBe(4);
    reader.feed(Buffer.from("\n"));
    expect(reader.held).toBe(0);
  });
});

const OPTIONS = { hostname: "mx.test", maxMessageBytes: MAX, maxRecipients: 3, ip: "192.0.2.9" };
const OPEN = ["EHLO c.example", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>"];

/** Plays a session. Returns reply codes and the accepted messages. Recipients at no.example are refused. */
function play(wire: string, cut: number): { codes: string[]; messages: string[]; phase: string } {
  const session = new Session(OPTIONS);
  const codes: string[] = [];
  const messages: string[] = [];
  const see = (actions: Action[]): void => {
    for (const action of actions) {
      if (action.kind === "write")
        codes.push(...action.text.split("\r\n").flatMap((line) => /^(\d{3}) /.exec(line)?.[1] ?? []));
      if (action.kind === "recipient")
        see(session.answer(action.address.endsWith("@no.example") ? reply(550, "5.1.1", "No") : null));
      if (action.kind === "message") {
        messages.push(Buffer.from(action.raw).toString("latin1"));
        see(session.answer(reply(250, "2.0.0", "Taken")));
      }
    }
  };
  const bytes = Buffer.from(wire, "latin1");
  for (let at = 0; at < bytes.length; at += cut) see(session.receive(bytes.subarray(at, at + cut)));
  return { codes, messages, phase: session.phase };
}

describe("BDAT", () => {
  const begun = ["250", "250", "250"];
  const rows: [name: string, commands: string[], codes: string[], messages: string[]][] = [
    ["a message that ends in a CR", [...OPEN, "BDAT 3 LAST\r\nhi\r\0"], [...begun, "550"], []],
    ["with its line end", [...OPEN, "BDAT 4 LAST\r\nhi\r\n\0"], [...begun, "250"], ["hi\r\n"]],
    [
      "in three chunks, pipelined",
      [...OPEN, "BDAT 3\r\nhi\r\0", "BDAT 5\r\n\nyou!\0", "BDAT 0 LAST", "NOOP"],
      [...begun, "250", "250", "250", "250"],
      ["hi\r\nyou!\r\n"],
    ],
    [
      "the octets of a chunk are no commands",
      [...OPEN, "BDAT 6 LAST\r\nQUIT\r\n\0", "NOOP"],
      [...begun, "250", "250"],
      ["QUIT\r\n"],
    ],
    [
      "without a sender it is read and refused",
      ["EHLO c", "BDAT 6 LAST\r\nQUIT\r\n\0", "NOOP"],
      ["250", "503", "250"],
      [],
    ],
    [
      "without a recipient",
      ["EHLO c", "MAIL FROM:<a@b.example>", "BDAT 6 LAST\r\nQUIT\r\n\0"],
      ["250", "250", "503"],
      [],
    ],
    [
      "when all recipients were refused",
      ["EHLO c", "MAIL FROM:<a@b.example>", "RCPT TO:<c@no.example>", "BDAT 6 LAST\r\nQUIT\r\n\0"],
      ["250", "250", "550", "554"],
      [],
    ],
    [
      "DATA, MAIL and RCPT are refused between chunks, RSET is not",
      [
        ...OPEN,
        "BDAT 4\r\nhi\r\n\0",
        "DATA",
        "RCPT TO:<e@f.example>",
        "MAIL FROM:<>",
        "RSET",
        "MAIL FROM:<>",
      ],
      [...begun, "250", "503", "503", "503", "250", "250"],
      [],
    ],
    [
      "a fault ends the message: later chunks are read and refused",
      [...OPEN, "BDAT 4\r\nhi\n!\0", "BDAT 6 LAST\r\nQUIT\r\n\0", "NOOP"],
      [...begun, "550", "503", "250"],
      [],
    ],
    [
      "chunks that are too large together",
      [...OPEN, `BDAT 60\r\n${"x".repeat(60)}\0`, `BDAT 60 LAST\r\n${"x".repeat(60)}\0`, "NOOP"],
      [...begun, "250", "552", "250"],
      [],
    ],
    [
      "a chunk of the largest size",
      [...OPEN, `BDAT ${MAX} LAST\r\n${"x".repeat(98)}\r\n\0`],
      [...begun, "250"],
      [`${"x".repeat(98)}\r\n`],
    ],
    ["one past it ends the connection", [...OPEN, `BDAT ${MAX + 1} LAST`, "NOOP"], [...begun, "552"], []],
    ["a size beyond numbers", [...OPEN, `BDAT ${"9".repeat(20)}`, "NOOP"], [...begun, "552"], []],
    ["no size ends the connection", [...OPEN, "BDAT", "NOOP"], [...begun, "501"], []],
    ["an invalid size", [...OPEN, "BDAT -1 LAST", "NOOP"], [...begun, "501"], []],
    ["characters after the size", [...OPEN, "BDAT 4 FIRST", "NOOP"], [...begun, "501"], []],
    [
      "two messages",
      [...OPEN, "BDAT 3 LAST\r\na\r\n\0", ...OPEN.slice(1), "BDAT 3 LAST\r\nb\r\n\0"],
      [...begun, "250", "250", "250", "250"],
      ["a\r\n", "b\r\n"],
    ],
  ];
  // If a line ends in NUL, it means octets of a chunk, which have no line end.
  const wireOf = (commands: readonly string[]) =>
    commands.map((line) => (line.endsWith("\0") ? line.slice(0, -1) : `${line}\r\n`)).join("");
  test.each(rows)("%s", (_name, commands, codes, messages) => {
    const wire = wireOf(commands);
    for (const cut of [wire.length, 1, 7]) {
      const played = play(wire, cut);
      expect([played.codes, played.messages]).toEqual([codes, messages]);
    }
  });
});
