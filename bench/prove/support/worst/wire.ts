/** Octets on connections that are bad for the readers of SMTP, HTTP, DNS and MTA-STS. */
import { encode } from "dns-packet";
import { systemClock } from "../../../../src/clock.ts";
import { log } from "../../../../src/log.ts";
import { decodeAnswer, encodeQuery } from "../../../../src/net/dns/packet.ts";
import { createResponseReader } from "../../../../src/net/http-response.ts";
import { parseStsPolicy, readStsId, MAX_POLICY_OCTETS } from "../../../../src/net/mta-sts-policy.ts";
import { MAX_QUERY_OCTETS } from "../../../../src/net/zone/query.ts";
import { createResponder } from "../../../../src/net/zone/responder.ts";
import { MAX_COMMAND_LINE_OCTETS } from "../../../../src/smtp/session/input-buffer.ts";
import { readProxyHeader } from "../../../../src/smtp/listener/proxy-header.ts";
import { Session } from "../../../../src/smtp/session/session.ts";
import { dotStuffed } from "../../../../src/smtp/client/stuffing.ts";
import { ORIGIN, testZone } from "../../../../test/support/zone.ts";
import { MAX_MAIL_OCTETS } from "./mail.ts";
import { asOctets, casesOf, filled, repeated, type WorstCase } from "./worst-case.ts";

/** The largest packet that DNS over TCP carries. */
const MAX_PACKET_OCTETS = 65_535;
const SMALL_PIECE_OCTETS = 16;
const PIECE_OCTETS = 64 * 1024;
/** Bytes of commands that one client sends: however many there are, each turn reads this number. */
const COMMAND_OCTETS = 1024 * 1024;

type Octets = Record<string, (octets: number) => Buffer>;

/** A session that takes mail. */
function session(): Session {
  const taking = new Session({
    hostname: "mx.mail.test",
    ip: "192.0.2.1",
    maxMessageBytes: MAX_MAIL_OCTETS,
    maxRecipients: 100,
  });
  taking.greet();
  return taking;
}

/** Hands bytes to a session in pieces, and answers all that it asks. */
function converse(begin: string, pieceOctets: number) {
  return (octets: Buffer): void => {
    const taking = session();
    hand(taking, Buffer.from(begin));
    for (let at = 0; at < octets.length; at += pieceOctets)
      hand(taking, octets.subarray(at, at + pieceOctets));
    taking.close();
  };
}

/** Hands bytes to a session that has every recipient and message taken, and every command read. */
function hand(to: Session, octets: Buffer): void {
  let actions = to.receive(octets);
  while (to.hasBacklog || actions.some(({ kind }) => kind === "recipient" || kind === "message"))
    actions = to.hasBacklog ? to.proceed() : to.answer(null);
}

const HELLO = "EHLO a.example\r\n";
const DATA = `${HELLO}MAIL FROM:<a@b.example>\r\nRCPT TO:<in@mail.test>\r\nDATA\r\n`;
const MESSAGE_PIECES = [
  "a",
  ".",
  "..",
  "\r\n..",
  "\r\n.\r",
  "\r\n",
  "\r",
  "\n",
  "\r.",
  "\r\n.\r\n\r\n",
  "\0",
  "\r\n.a",
];
const COMMAND_PIECES = [
  "NOOP\r\n",
  "a",
  "\n",
  "\r",
  "RSET\r\n",
  "\r\n",
  "MAIL FROM:<a@b.example>\r\nRSET\r\n",
  "VRFY a\r\n",
  " ",
  "\xff",
];
const LINE_PIECES = [
  " A=b",
  "a",
  '"',
  "\\",
  "@",
  ".",
  "<",
  ">",
  ":",
  ",@a",
  "\u00c3\u00a9",
  "a.",
  "=",
  " ",
  '"\\',
];

const lineShapes = (begin: string, end: string): Octets => asOctets(repeated(LINE_PIECES, begin, end));

const STATUS = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${STATUS}Transfer-Encoding: chunked\r\n\r\n`;

/** Hands an answer to a reader in pieces until it wants no more. */
function answered(pieceOctets: number) {
  return (octets: Buffer): void => {
    const reader = createResponseReader(MAX_POLICY_OCTETS);
    for (let at = 0; at < octets.length; at += pieceOctets)
      if (reader.push(octets.subarray(at, at + pieceOctets)) !== "reading") break;
    reader.response();
  };
}

const answers: Octets = {
  ...asOctets(repeated(["a", "a: b\r\n", "\r\n a", ":", "\n", "\r", " ", "a\r\n"], STATUS)),
  ...asOctets(repeated(["HTTP/1.1 100 a\r\n\r\n"])),
  ...asOctets(
    repeated(["1\r\na\r\n", "1;a\r\na\r\n", "0", "1", "\r\n", "FFFF\r\na", ";", "00001\r\na\r\n"], CHUNKED),
  ),
  ...asOctets(repeated(["a"], `${STATUS}Content-Length: 99999999\r\n\r\n`)),
};

const QUESTION = { name: "bank.example", type: "TXT" } as const;
const ID = 7;

/** An answer to our question with a piece of wire over and over for its records. */
function packet(type: "TXT" | "MX", record: Buffer) {
  return (octets: number): Buffer => {
    const head = encode({ id: ID, type: "response", questions: [{ ...QUESTION, type }] });
    const count = Math.max(1, Math.floor((octets - head.length) / record.length));
    head.writeUInt16BE(Math.min(count, 0xffff), 6);
    return Buffer.concat([head, ...Array.from({ length: count }, () => record)]);
  };
}

/** A record named by a pointer to the question, with the data given. */
function record(type: number, data: Buffer, name = Buffer.from([0xc0, 12])): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, head, data]);
}

const LABELS = Buffer.concat([...Array.from({ length: 120 }, () => Buffer.from("\x01a")), Buffer.from([0])]);
const [TXT, MX, OPT, NSEC, SOA] = [16, 15, 41, 47, 6];
const packets: Octets = {
  "empty strings": packet("TXT", record(TXT, Buffer.from([0]))),
  "one-octet strings": packet("TXT", record(TXT, Buffer.from(filled("\x01a", 400)))),
  "one record of strings": (octets) =>
    packet("TXT", record(TXT, Buffer.from(filled("\x01a", Math.max(1, octets - 60)))))(0),
  "long names": packet("MX", record(MX, Buffer.concat([Buffer.from([0, 0]), LABELS]))),
  "names of pointers": packet("MX", record(MX, Buffer.from([0, 0, 1, 97, 0xc0, 12]))),
  "pointers to themselves": packet("MX", record(MX, Buffer.from([0, 0, 0xc0, 30]))),
  options: packet("TXT", record(OPT, Buffer.from([0, 8, 0, 4, 0, 1, 0, 0]))),
  "one record of options": (octets) =>
    packet("TXT", record(OPT, Buffer.alloc(4 * Math.max(1, Math.floor(octets / 4) - 20))))(0),
  "types of NSEC": packet(
    "TXT",
    record(NSEC, Buffer.concat([Buffer.from([0, 0, 32]), Buffer.alloc(32, 255)])),
  ),
  authorities: packet("TXT", record(SOA, Buffer.concat([LABELS, LABELS, Buffer.alloc(20)]))),
  zeros: (octets) => Buffer.concat([packet("TXT", Buffer.alloc(1))(0), Buffer.alloc(octets)]),
};

const ASKED = encodeQuery({ name: `a.dkim.${ORIGIN}`, type: "TXT" }, ID, true);
const queries: Octets = {
  options: (octets) => behindQuery(record(OPT, Buffer.alloc(Math.max(0, octets - 80)), Buffer.from([0]))),
  records: (octets) =>
    behindQuery(...Array.from({ length: octets / 20 }, () => record(NSEC, Buffer.from([0, 0, 1, 255])))),
  "many questions": (octets) => Buffer.concat([ASKED, Buffer.alloc(octets, 0)]),
  "long name": () => encodeQuery({ name: `${filled("a.", 220)}dkim.${ORIGIN}`, type: "TXT" }, ID, false),
};

function behindQuery(...records: readonly Buffer[]): Buffer {
  const asked = encodeQuery({ name: ORIGIN, type: "MX" }, ID, false);
  asked.writeUInt16BE(Math.min(records.length, 0xffff), 10);
  return Buffer.concat([asked, ...records]).subarray(0, MAX_QUERY_OCTETS);
}

const responder = createResponder({ clock: systemClock, log: log("dns"), zone: testZone() });
const policy = (octets: Buffer): unknown => [parseStsPolicy(octets), readStsId([octets.toString("latin1")])];

/** All of them. */
export const WIRE_CASES: readonly WorstCase[] = [
  ...casesOf("SMTP data", MAX_MAIL_OCTETS, converse(DATA, PIECE_OCTETS), asOctets(repeated(MESSAGE_PIECES))),
  ...casesOf(
    "SMTP data in small pieces",
    COMMAND_OCTETS,
    converse(DATA, SMALL_PIECE_OCTETS),
    asOctets(repeated(MESSAGE_PIECES.slice(0, 8))),
  ),
  ...casesOf(
    "SMTP commands",
    COMMAND_OCTETS,
    converse(HELLO, PIECE_OCTETS),
    asOctets(repeated(COMMAND_PIECES)),
  ),
  ...casesOf(
    "SMTP commands in small pieces",
    COMMAND_OCTETS,
    converse(HELLO, SMALL_PIECE_OCTETS),
    asOctets(repeated(COMMAND_PIECES)),
  ),
  ...casesOf(
    "SMTP MAIL",
    MAX_COMMAND_LINE_OCTETS,
    converse(HELLO, PIECE_OCTETS),
    lineShapes("MAIL FROM:<", "@b.example>\r\n"),
  ),
  ...casesOf(
    "SMTP parameters",
    MAX_COMMAND_LINE_OCTETS,
    converse(HELLO, PIECE_OCTETS),
    lineShapes("MAIL FROM:<a@b.example>", "\r\n"),
  ),
  ...casesOf("stuffed mail", MAX_MAIL_OCTETS, dotStuffed, asOctets(repeated(["\n.", ".", "\r\n.", "a"]))),
  ...casesOf(
    "PROXY header",
    4096,
    readProxyHeader,
    asOctets(repeated(["\0", "\xff"], "\r\n\r\n\0\r\nQUIT\n")),
  ),
  ...casesOf("HTTP answer", 1024 * 1024, answered(PIECE_OCTETS), answers),
  ...casesOf("HTTP answer, octet by octet", 1024 * 1024, answered(1), answers),
  ...casesOf(
    "DNS answer",
    MAX_PACKET_OCTETS,
    (octets: Buffer) => [
      decodeAnswer(octets, QUESTION, ID),
      decodeAnswer(octets, { ...QUESTION, type: "MX" }, ID),
    ],
    packets,
  ),
  ...casesOf(
    "DNS query",
    MAX_QUERY_OCTETS,
    (octets: Buffer) => responder(octets, "tcp", "192.0.2.9"),
    queries,
  ),
  ...casesOf(
    "MTA-STS",
    MAX_POLICY_OCTETS,
    policy,
    asOctets(
      repeated(["mx: a\n", "a:", " ", "\n", "a: b\r\n", ";a=b", "; ", "a", "mx: a.", "\t"], "v=STSv1; id=a"),
    ),
  ),
];
