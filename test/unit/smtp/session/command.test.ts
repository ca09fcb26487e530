import { describe, expect, test } from "bun:test";
import { parseCommand } from "../../../../src/smtp/session/command.ts";
import { REPLIES, type Reply } from "../../../../src/smtp/session/reply.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

function refusal(line: string): Reply {
  const command = parseCommand(line);
  if (command.verb !== "refused") throw new Error(`${line} was taken for ${command.verb}`);
  return command.reply;
}

describe("MAIL takes these reverse-paths and parameters", () => {
  const plain = { smtpUtf8: false };
  const rows: [line: string, address: string, parameters: object][] = [
    ["MAIL FROM:<a@b.example>", "a@b.example", plain],
    ["mail from:<A.B@B.Example>", "A.B@B.Example", plain],
    ["MAIL FROM:<>", "", plain],
    ["MAIL FROM:<> SIZE=0", "", { ...plain, size: 0 }],
    ["MAIL FROM: <a@b.example>", "a@b.example", plain],
    ["MAIL FROM:<a@b.example>  ", "a@b.example", plain],
    ["MAIL FROM:<@one.example,@two.example:a@b.example>", "a@b.example", plain],
    ['MAIL FROM:<"a b"@c.example>', '"a b"@c.example', plain],
    ['MAIL FROM:<"a.b"@c.example>', "a.b@c.example", plain],
    ['MAIL FROM:<"a\\.b"@c.example>', "a.b@c.example", plain],
    ['MAIL FROM:<"a>b@x"@c.example>', '"a>b@x"@c.example', plain],
    ['MAIL FROM:<"a\\"b\\\\c"@d.example>', '"a\\"b\\\\c"@d.example', plain],
    ['MAIL FROM:<""@c.example>', '""@c.example', plain],
    ["MAIL FROM:<a@[192.0.2.1]>", "a@[192.0.2.1]", plain],
    ["MAIL FROM:<a@[IPv6:2001:db8::1]>", "a@[IPv6:2001:db8::1]", plain],
    [
      "MAIL FROM:<a+b=c@d.example> SIZE=12345 BODY=8BITMIME",
      "a+b=c@d.example",
      { ...plain, size: 12345, body: "8BITMIME" },
    ],
    ["MAIL FROM:<a@b.example> body=7bit size=1", "a@b.example", { ...plain, size: 1, body: "7BIT" }],
    ["MAIL FROM:<é@b.example> SMTPUTF8", "é@b.example", { smtpUtf8: true }],
    ["MAIL FROM:<a@bücher.example> SMTPUTF8", "a@bücher.example", { smtpUtf8: true }],
    ["MAIL FROM:<a@b_c.example>", "a@b_c.example", plain],
  ];
  for (const [line, address, parameters] of rows)
    test(line, () => {
      const command = parseCommand(line);
      expect(command.verb === "MAIL" ? command.path.address : command).toEqual(address);
      expect(command.verb === "MAIL" ? command.parameters : command).toEqual(parameters as never);
    });
});

describe("MAIL accepts senders that could receive no mail", () => {
  const rewritten = `SRS0=HHHH=TT=${"d".repeat(60)}.example=${"l".repeat(200)}`;
  for (const address of [
    "a..b@c.example",
    ".a@c.example",
    "a.@c.example",
    "..a...b..@[192.0.2.1]",
    `${rewritten}@b.example`,
    `${"l".repeat(512)}@${"d.".repeat(123)}example`,
    `"${" ".repeat(512)}"@b.example`,
  ])
    test(address, () => {
      const command = parseCommand(`MAIL FROM:<${address}> SIZE=1`);
      expect(command.verb === "MAIL" ? command.path : command).toEqual({ address, beyondAscii: false });
      const recipient = parseCommand(`RCPT TO:<${address}>`);
      expect(recipient).toEqual({ verb: "refused", reply: REPLIES.badRecipient, recipient: true });
    });
});

describe("RCPT takes these forward-paths", () => {
  for (const [line, address] of [
    ["RCPT TO:<a@b.example>", "a@b.example"],
    ["rcpt to:<Postmaster>", "Postmaster"],
    ["RCPT TO:<@relay.example:a@b.example>", "a@b.example"],
    [`RCPT TO:<${"l".repeat(244)}@b.example>`, `${"l".repeat(244)}@b.example`],
    [`RCPT TO:<reply+${"l".repeat(90)}@b.example>`, `reply+${"l".repeat(90)}@b.example`],
    [`RCPT TO:<"${"l l".repeat(40)}"@b.example>`, `"${"l l".repeat(40)}"@b.example`],
    [`RCPT TO:<${"l".repeat(64)}@${"d.".repeat(91)}example>`, `${"l".repeat(64)}@${"d.".repeat(91)}example`],
  ] as const)
    test(line, () => {
      const command = parseCommand(line);
      expect(command.verb === "RCPT" ? command.path.address : command).toEqual(address);
    });
});

describe("malformed commands are refused", () => {
  const rows: [line: string, reply: Reply][] = [
    ["MAIL", REPLIES.badMailSyntax],
    ["MAIL FROM", REPLIES.badMailSyntax],
    ["MAIL FROM:", REPLIES.badMailSyntax],
    ["MAIL FROM a@b.example", REPLIES.badMailSyntax],
    ["MAIL FROM:a@b.example", REPLIES.badMailSyntax],
    ["MAIL FROM :<a@b.example>", REPLIES.badMailSyntax],
    ["MAIL TO:<a@b.example>", REPLIES.badMailSyntax],
    ["MAIL FROM:<a@b.example", REPLIES.badMailSyntax],
    ["MAIL FROM:a@b.example>", REPLIES.badMailSyntax],
    ["MAIL FROM:<<a@b.example>>", REPLIES.badMailSyntax],
    ["MAIL FROM:<a@b.example>SIZE=1", REPLIES.badMailSyntax],
    ["MAIL FROM:<a@b.example>,<c@d.example>", REPLIES.badMailSyntax],
    ['MAIL FROM:<"a@b.example>', REPLIES.badMailSyntax],
    ["MAIL FROM:< >", REPLIES.badSender],
    ["MAIL FROM:< a@b.example >", REPLIES.badSender],
    ["MAIL FROM:<a>", REPLIES.badSender],
    ["MAIL FROM:<@b.example>", REPLIES.badSender],
    ["MAIL FROM:<a@>", REPLIES.badSender],
    ["MAIL FROM:<a@b@c.example>", REPLIES.badSender],
    ["MAIL FROM:<a b@c.example>", REPLIES.badSender],
    ["MAIL FROM:<a,b@c.example>", REPLIES.badSender],
    ["MAIL FROM:<a(comment)@c.example>", REPLIES.badSender],
    ["MAIL FROM:<a@b..example>", REPLIES.badSender],
    ["MAIL FROM:<a@b.example.>", REPLIES.badSender],
    ["MAIL FROM:<a@-b.example>", REPLIES.badSender],
    ["MAIL FROM:<a@192.0.2.1>", REPLIES.badSender],
    ["MAIL FROM:<a@[192.0.2.256]>", REPLIES.badSender],
    ["MAIL FROM:<a@[2001:db8::1]>", REPLIES.badSender],
    ["MAIL FROM:<a@[IPv6:fe80::1%eth0]>", REPLIES.badSender],
    ["MAIL FROM:<a@[]>", REPLIES.badSender],
    ["MAIL FROM:<a@[tag:what]>", REPLIES.badSender],
    ["MAIL FROM:<@one.example a@b.example>", REPLIES.badSender],
    ["MAIL FROM:<@:a@b.example>", REPLIES.badSender],
    ["MAIL FROM:<@one.example:>", REPLIES.badSender],
    ['MAIL FROM:<"a"b@c.example>', REPLIES.badSender],
    ['MAIL FROM:<"a".b@c.example>', REPLIES.badSender],
    ["MAIL FROM:<.@c.example>", REPLIES.badSender],
    ["MAIL FROM:<a. b@c.example>", REPLIES.badSender],
    [`MAIL FROM:<${"l".repeat(513)}@b.example>`, REPLIES.badSender],
    [`MAIL FROM:<"${" ".repeat(513)}"@b.example>`, REPLIES.badSender],
    [`MAIL FROM:<${"@h.example,".repeat(100)}@h.example:a@b.example>`, REPLIES.badSender],
    [
      `MAIL FROM:<a@${"d".repeat(63)}.${"d".repeat(63)}.${"d".repeat(63)}.${"d".repeat(60)}.example>`,
      REPLIES.badSender,
    ],
    ["MAIL FROM:<Postmaster>", REPLIES.badSender],
    ["MAIL FROM:<é@b.example>", REPLIES.needsSmtpUtf8],
    ["MAIL FROM:<a\u00a0b@b.example> SMTPUTF8", REPLIES.badSender],
    ["MAIL FROM:<a@b.example> SIZE", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SIZE=", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SIZE=-1", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SIZE=1e3", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SIZE=123456789012345678901", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SIZE=1 SIZE=2", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> BODY=BINARYMIME", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> BODY", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> SMTPUTF8=1", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> =1", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> X=a=b", REPLIES.badParameter],
    ["MAIL FROM:<a@b.example> AUTH=<>", REPLIES.unknownParameter],
    ["MAIL FROM:<a@b.example> constructor", REPLIES.unknownParameter],
    ["MAIL FROM:<a@b.example> __proto__", REPLIES.badParameter],
    ["RCPT TO:<>", REPLIES.badRecipient],
    ["RCPT TO:<postmaster@>", REPLIES.badRecipient],
    ["RCPT TO:a@b.example", REPLIES.badRcptSyntax],
    ["RCPT FROM:<a@b.example>", REPLIES.badRcptSyntax],
    ["RCPT TO:<a@b.example> NOTIFY=NEVER", REPLIES.unknownParameter],
    ["RCPT TO:<a@b.example> SMTPUTF8", REPLIES.unknownParameter],
    ["EHLO", REPLIES.badHelo],
    [`HELO ${"a".repeat(256)}`, REPLIES.badHelo],
    ["DATA now", REPLIES.noArgument],
    ["RSET x", REPLIES.noArgument],
    ["QUIT x", REPLIES.noArgument],
    ["STARTTLS x", REPLIES.noArgument],
    ["VRFY", REPLIES.needsArgument],
    ["AUTH PLAIN", REPLIES.notImplemented],
    ["EXPN list", REPLIES.notImplemented],
    ["BURL imap://x", REPLIES.notImplemented],
    ["", REPLIES.unknownCommand],
    [" NOOP", REPLIES.unknownCommand],
    ["MAILFROM:<a@b.example>", REPLIES.unknownCommand],
    ["constructor", REPLIES.unknownCommand],
    ["NOOP\0", REPLIES.malformedLine],
    ["NOOP\nMAIL FROM:<a@b.example>", REPLIES.malformedLine],
    ["NOOP\rMAIL FROM:<a@b.example>", REPLIES.malformedLine],
    ["RCPT TO:<a\x7f@b.example>", REPLIES.malformedLine],
    ["GET / HTTP/1.1", REPLIES.notSmtp],
    ["post /", REPLIES.notSmtp],
    ["PUT / HTTP/1.1", REPLIES.notSmtp],
    ["CONNECT a.test:25 HTTP/1.1", REPLIES.notSmtp],
    ["OPTIONS / HTTP/1.1", REPLIES.notSmtp],
  ];
  for (const [line, reply] of rows)
    test(JSON.stringify(line).slice(0, 70), () => expect(refusal(line)).toEqual(reply));
});

describe("EHLO and HELO accept the names that real peers use", () => {
  for (const name of [
    "mx.example",
    "[192.0.2.1]",
    "[IPv6:::1]",
    "localhost",
    "MY_PC",
    "192.0.2.1",
    "[x-tag:what]",
  ])
    test(name, () => {
      expect(parseCommand(`EHLO ${name}`)).toEqual({ verb: "EHLO", name });
      expect(parseCommand(`helo ${name} `)).toEqual({ verb: "HELO", name });
    });
  test.each([
    ["o'brien-pc", "o?brien-pc"],
    ["%COMPUTERNAME%", "?COMPUTERNAME?"],
    ["a b", "a?b"],
    ["a(b)", "a?b?"],
    ["[x(y)]", "[x?y?]"],
    ["jos\u00e9-\u{1f4bb}.example", "jos?-?.example"],
    ["a;by\tx", "a?by?x"],
  ])("%s, without characters that might break out of a header field", (given, name) => {
    expect(parseCommand(`EHLO ${given}`)).toEqual({ verb: "EHLO", name });
    expect(parseCommand(`HELO ${given}`)).toEqual({ verb: "HELO", name });
  });
});

test("commands without arguments, in any case, with white space at the end", () => {
  for (const verb of ["DATA", "RSET", "QUIT", "STARTTLS", "NOOP", "HELP"] as const)
    for (const line of [verb, verb.toLowerCase(), `${verb} \t`]) expect(parseCommand(line)).toEqual({ verb });
  expect(parseCommand("NOOP whatever you say")).toEqual({ verb: "NOOP" });
  expect(parseCommand("VRFY someone")).toEqual({ verb: "VRFY" });
  expect(parseCommand("HELP MAIL")).toEqual({ verb: "HELP" });
});

test("lines made to stall a parser are read in linear time", () => {
  const started = cpuMs();
  for (const filler of [" ", '"', '"\\', "\\", "a", ".", "<", "@a,", ":", "=", "\t "])
    for (const head of ["", "MAIL FROM:<", 'MAIL FROM:<"', "MAIL FROM:<a@b.example> ", "RCPT TO:<@", "EHLO "])
      parseCommand(`${head}${filler.repeat(2000 / filler.length)}x`);
  expect(cpuMs() - started).toBeLessThan(1000);
});
