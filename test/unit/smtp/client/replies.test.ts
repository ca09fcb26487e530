import { describe, expect, test } from "bun:test";
import { readCapabilities } from "../../../../src/smtp/client/capabilities.ts";
import {
  createReplyParser,
  explanation,
  MAX_EXPLANATION,
  MAX_REPLY_LINE_OCTETS,
  MAX_REPLY_LINES,
  MAX_REPLY_OCTETS,
  type Reply,
  ReplySyntaxError,
  replyText,
} from "../../../../src/smtp/client/reply-parser.ts";

function parse(text: string): Reply[] {
  const replies: Reply[] = [];
  createReplyParser().push(Buffer.from(text), (reply) => replies.push(reply));
  return replies;
}

describe("replies", () => {
  const rows: [text: string, code: number, enhanced: string | null, lines: string[]][] = [
    ["250 ok\r\n", 250, null, ["ok"]],
    ["250\r\n", 250, null, [""]],
    ["250 \r\n", 250, null, [""]],
    ["250 ok\n", 250, null, ["ok"]],
    ["250-a\r\n250-b\r\n250 c\r\n", 250, null, ["a", "b", "c"]],
    ["550 5.1.1 no such user\r\n", 550, "5.1.1", ["no such user"]],
    ["550-5.1.1 no\r\n550 5.1.1 user\r\n", 550, "5.1.1", ["no", "user"]],
    ["550-no\r\n550 5.7.1 user\r\n", 550, "5.7.1", ["no", "user"]],
    ["250 2.0.0\r\n", 250, "2.0.0", [""]],
    ["250 5.1.1x no code\r\n", 250, null, ["5.1.1x no code"]],
    ["250 a\tb\x00c\x1b[31m\r\n", 250, null, ["a b c [31m"]],
    ["250 grüß\r\n", 250, null, ["grüß"]],
    ["250-a\r\n251 b\r\n", 251, null, ["a", "b"]],
    ["550-a\r\n551-b\r\n552 c\r\n", 552, null, ["a", "b", "c"]],
  ];
  test.each(rows)("%j", (text, code, enhanced, lines) => {
    expect(parse(text)).toEqual([{ code, enhanced, lines }]);
  });

  test("several in one chunk are several", () => {
    expect(parse("250 a\r\n251-b\r\n251 c\r\n354 d\r\n").map(({ code }) => code)).toEqual([250, 251, 354]);
  });

  test("any cut into chunks gives the same replies", () => {
    const octets = Buffer.from("220 hi\r\n250-a\r\n250-PIPELINING\r\n250 c\r\n550 5.1.1 grüß\r\n");
    for (let size = 1; size < octets.length; size++) {
      const parser = createReplyParser();
      const replies: Reply[] = [];
      for (let at = 0; at < octets.length; at += size)
        parser.push(octets.subarray(at, at + size), (reply) => replies.push(reply));
      expect(replies.map(replyText)).toEqual(["220 hi", "250 a PIPELINING c", "550 5.1.1 grüß"]);
      expect(parser.pending()).toBe(false);
    }
  });

  test.each([
    "HTTP/1.1 400 Bad\r\n",
    "25 ok\r\n",
    "2500 ok\r\n",
    "250_ok\r\n",
    "150 ok\r\n",
    "650 ok\r\n",
    "\r\n",
    "250-a\r\n550 b\r\n",
    " 250 ok\r\n",
  ])("%j is not a reply", (text) => {
    expect(() => parse(text)).toThrow(ReplySyntaxError);
  });

  test.each(["no reply\r\n", "250-a\r\n550 b\r\n", `250 ${"x".repeat(MAX_REPLY_OCTETS)}`])(
    "replies before %j in one chunk are returned",
    (fault) => {
      const replies: Reply[] = [];
      const push = () =>
        createReplyParser().push(Buffer.from(`250 a\r\n354 b\r\n${fault}`), (reply) => replies.push(reply));
      expect(push).toThrow(ReplySyntaxError);
      expect(replies.map(replyText)).toEqual(["250 a", "354 b"]);
    },
  );

  test("the beginning of an overlong reply line is kept, however it is cut into chunks", () => {
    const kept = "x".repeat(MAX_REPLY_LINE_OCTETS - 4);
    for (const more of [0, 1, 2, 100_000]) {
      const octets = Buffer.from(`250-${kept}${"y".repeat(more)}\r\n250 ok\r\n354 go\r\n`);
      for (const size of [octets.length, 1000, 2049, MAX_REPLY_LINE_OCTETS + 1]) {
        const parser = createReplyParser();
        const replies: Reply[] = [];
        for (let at = 0; at < octets.length; at += size)
          parser.push(octets.subarray(at, at + size), (reply) => replies.push(reply));
        expect(replies.map(({ code, lines }) => [code, lines])).toEqual([
          [250, [kept, "ok"]],
          [354, ["go"]],
        ]);
      }
    }
  });

  test("the first lines and the last of a reply with too many lines are kept", () => {
    const reply = (lines: number): string => `${"250-x\r\n".repeat(lines - 1)}250 end\r\n`;
    for (const lines of [MAX_REPLY_LINES, MAX_REPLY_LINES + 1, 5000])
      expect(parse(reply(lines))).toMatchObject([{ code: 250, lines: { length: MAX_REPLY_LINES } }]);
    expect(parse(reply(5000))[0]?.lines.at(-1)).toBe("end");
  });

  test("a reply of the greatest length is read, one octet more is not", () => {
    const reply = (octets: number): string => `250-x\r\n250 ${"x".repeat(octets - 12)}\n`;
    expect(parse(reply(MAX_REPLY_OCTETS).repeat(2))).toHaveLength(2);
    expect(() => parse(reply(MAX_REPLY_OCTETS + 1))).toThrow("too long");
    expect(() => parse(`250 ${"x".repeat(MAX_REPLY_OCTETS)}`)).toThrow("too long");
    expect(() => parse("250-x\r\n".repeat(MAX_REPLY_OCTETS / 5))).toThrow("too long");
  });

  test("a text over the bound is cut where it is kept", () => {
    const [reply] = parse(`${`550-${"x".repeat(1500)}\r\n`.repeat(3)}550 end\r\n`);
    expect(reply && explanation(reply)).toHaveLength(MAX_EXPLANATION);
  });

  test("a cut text never splits a surrogate pair", () => {
    const long = "x".repeat(MAX_EXPLANATION - 1);
    const reply = { code: 550, enhanced: null, lines: [`${long}😀`] };
    expect(explanation(reply)).toBe(`${long}\ufffd`);
  });

  test("noise gives replies with valid codes or a syntax error", () => {
    // A generator with a fixed seed, so that failures repeat (Numerical Recipes' constants).
    let seed = 42;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return (seed >>> 8) % below;
    };
    const pieces = ["250", "-", " ", "\r\n", "\n", "\r", "550", "5.1.1", "x", "\0", "ü", "354", "2", "99"];
    let taken = 0;
    for (let turn = 0; turn < 20_000; turn++) {
      const parser = createReplyParser();
      try {
        for (let chunks = 0; chunks < 4; chunks++) {
          const text = Array.from({ length: 1 + random(5) }, () => pieces[random(pieces.length)]).join("");
          parser.push(Buffer.from(text), ({ code }) => {
            taken++;
            expect(code).toBeWithin(200, 600);
          });
        }
      } catch (error) {
        expect(error).toBeInstanceOf(ReplySyntaxError);
      }
    }
    expect(taken).toBeGreaterThan(100);
  });
});

describe("capabilities", () => {
  const capabilities = (...lines: string[]) =>
    readCapabilities({ code: 250, enhanced: null, lines: ["mx.test", ...lines] });

  test("keywords are read in any letter case, and not from the greeting line", () => {
    expect(capabilities("pipelining", "8BitMime", "StartTLS", "SMTPUTF8", "auth plain Login")).toEqual({
      pipelining: true,
      startTls: true,
      eightBitMime: true,
      smtpUtf8: true,
      size: false,
      maxSize: null,
      auth: new Set(["PLAIN", "LOGIN"]),
    });
    expect(readCapabilities({ code: 250, enhanced: null, lines: ["PIPELINING"] }).pipelining).toBe(false);
  });

  test.each([
    ["SIZE", null],
    ["SIZE 0", null],
    ["SIZE 1000", 1000],
    ["SIZE many", null],
  ])("%s", (line, maxSize) => {
    expect(capabilities(line)).toMatchObject({ size: true, maxSize });
  });

  test("AUTH= of old servers is understood", () => {
    expect(capabilities("AUTH=LOGIN PLAIN").auth).toEqual(new Set(["LOGIN", "PLAIN"]));
  });

  test("all AUTH lines are read", () => {
    const { auth } = capabilities("AUTH GSSAPI NTLM", "AUTH=LOGIN", "auth plain login");
    expect(auth).toEqual(new Set(["GSSAPI", "NTLM", "LOGIN", "PLAIN"]));
  });
});
