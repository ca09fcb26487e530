import { describe, expect, test } from "bun:test";
import { maxSharedOctets } from "../../../../src/smtp/session/message-buffer.ts";
import { MAX_COMMAND_LINE_OCTETS } from "../../../../src/smtp/session/input-buffer.ts";
import { MessageMemory } from "../../../../src/smtp/session/message-memory.ts";
import { REPLIES, type Reply, reply } from "../../../../src/smtp/session/reply.ts";
import type { Action, SessionOptions } from "../../../../src/smtp/session/actions.ts";
import {
  MAX_COMMANDS_IN_A_ROW,
  MAX_ERRORS,
  MAX_REFUSED_RECIPIENTS,
  MAX_WAITING_OCTETS,
} from "../../../../src/smtp/session/session-limits.ts";
import { Session } from "../../../../src/smtp/session/session.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const OPTIONS = { hostname: "mx.test", maxMessageBytes: 100, maxRecipients: 3, ip: "192.0.2.9" };
const TAKEN = reply(250, "2.0.0", "Taken");

interface Play {
  session: Session;
  /** Reply codes in order, one for each reply. */
  codes: string[];
  asked: Exclude<Action, { kind: "write" | "close" | "startTls" }>[];
  kinds: Action["kind"][];
  say(...lines: string[]): Play;
  raw(text: string): Play;
}

/**
 * A session whose questions are answered at once: recipients at `no.example` are refused, the message is accepted.
 */
function play(options: Partial<SessionOptions> = {}, answer = true): Play {
  const session = new Session({ ...OPTIONS, ...options });
  const see = (actions: Action[]): void => {
    for (const action of actions) {
      self.kinds.push(action.kind);
      if (action.kind === "write")
        self.codes.push(
          ...action.text.split("\r\n").flatMap((line) => /^(\d{3}(?: \d\.\d\.\d)?) /.exec(line)?.[1] ?? []),
        );
      if (action.kind === "recipient" || action.kind === "message") {
        self.asked.push(action);
        if (answer) see(session.answer(verdict(action)));
      }
    }
  };
  const self: Play = {
    session,
    codes: [],
    asked: [],
    kinds: [],
    say: (...lines) => self.raw(lines.map((line) => `${line}\r\n`).join("")),
    raw: (text) => {
      see(session.receive(Buffer.from(text)));
      return self;
    },
  };
  return self;
}

function verdict(action: Action): Reply | null {
  if (action.kind === "message") return TAKEN;
  return action.kind === "recipient" && action.address.endsWith("@no.example")
    ? reply(550, "5.1.1", "No")
    : null;
}

const EHLO = "EHLO client.example";
const MAIL = "MAIL FROM:<a@b.example>";
const RCPT = "RCPT TO:<c@d.example>";

const dialogues: { name: string; lines: string[]; codes: string[] }[] = [
  {
    name: "a message",
    lines: [EHLO, MAIL, RCPT, "DATA", "hi", ".", "QUIT"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "250 2.0.0", "221 2.0.0"],
  },
  {
    name: "two messages, HELO",
    lines: ["HELO x", MAIL, RCPT, "DATA", ".", MAIL, RCPT, "DATA", "."],
    codes: [
      "250",
      "250 2.1.0",
      "250 2.1.5",
      "354",
      "250 2.0.0",
      "250 2.1.0",
      "250 2.1.5",
      "354",
      "250 2.0.0",
    ],
  },
  { name: "MAIL before EHLO", lines: [MAIL], codes: ["503 5.5.1"] },
  { name: "RCPT before MAIL", lines: [EHLO, RCPT], codes: ["250", "503 5.5.1"] },
  { name: "DATA before MAIL", lines: [EHLO, "DATA"], codes: ["250", "503 5.5.1"] },
  { name: "DATA before RCPT", lines: [EHLO, MAIL, "DATA"], codes: ["250", "250 2.1.0", "503 5.5.1"] },
  { name: "MAIL within a transaction", lines: [EHLO, MAIL, MAIL], codes: ["250", "250 2.1.0", "503 5.5.1"] },
  {
    name: "DATA when all recipients were refused",
    lines: [EHLO, MAIL, "RCPT TO:<x@no.example>", "DATA"],
    codes: ["250", "250 2.1.0", "550 5.1.1", "554 5.5.1"],
  },
  ...[
    ["RCPT TO:nobody", "501 5.5.4"],
    ["RCPT TO:<no domain>", "501 5.1.3"],
    [`${RCPT} X=1`, "555 5.5.4"],
    ["RCPT TO:<\u00fc@d.example>", "553 5.6.7"],
  ].map(([refused = "", code = ""]) => ({
    name: `DATA after ${refused} alone`,
    lines: [EHLO, MAIL, refused, "DATA"],
    codes: ["250", "250 2.1.0", code, "554 5.5.1"],
  })),
  {
    name: "RSET ends a transaction",
    lines: [EHLO, MAIL, RCPT, "RSET", "DATA", RCPT, MAIL],
    codes: ["250", "250 2.1.0", "250 2.1.5", "250 2.0.0", "503 5.5.1", "503 5.5.1", "250 2.1.0"],
  },
  {
    name: "EHLO ends a transaction",
    lines: [EHLO, MAIL, RCPT, EHLO, "DATA"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "250", "503 5.5.1"],
  },
  {
    name: "a transaction ends with its message",
    lines: [EHLO, MAIL, RCPT, "DATA", ".", RCPT],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "250 2.0.0", "503 5.5.1"],
  },
  {
    name: "one recipient more than allowed",
    lines: [EHLO, MAIL, ...["1", "2", "3", "4"].map((name) => `RCPT TO:<${name}@d.example>`), "DATA", "."],
    codes: ["250", "250 2.1.0", "250 2.1.5", "250 2.1.5", "250 2.1.5", "452 4.5.3", "354", "250 2.0.0"],
  },
  {
    name: "a second recipient from the null sender",
    lines: [EHLO, "MAIL FROM:<>", RCPT, "RCPT TO:<e@f.example>"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "452 4.5.3"],
  },
  { name: "SIZE at the limit", lines: [EHLO, `${MAIL} SIZE=100`], codes: ["250", "250 2.1.0"] },
  {
    name: "SIZE one past it",
    lines: [EHLO, `${MAIL} SIZE=101`, RCPT],
    codes: ["250", "552 5.3.4", "503 5.5.1"],
  },
  {
    name: "a message at the limit",
    lines: [EHLO, MAIL, RCPT, "DATA", "x".repeat(98), "."],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "250 2.0.0"],
  },
  {
    name: "a message one octet past it",
    lines: [EHLO, MAIL, RCPT, "DATA", "x".repeat(99), ".", "NOOP"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "552 5.3.4", "250 2.0.0"],
  },
  {
    name: "a message with a bare LF, drained, ends the session",
    lines: [EHLO, MAIL, RCPT, "DATA", "x\n.\nMAIL FROM:<evil@b.example>", ".", "NOOP"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "550 5.5.2", "421 4.7.0"],
  },
  {
    name: "a message with a bare CR ends the session",
    lines: [EHLO, MAIL, RCPT, "DATA", "x\ry", ".", "NOOP"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "550 5.5.2", "421 4.7.0"],
  },
  {
    name: "a message with a NUL ends the session",
    lines: [EHLO, MAIL, RCPT, "DATA", "\0", ".", "NOOP"],
    codes: ["250", "250 2.1.0", "250 2.1.5", "354", "550 5.6.0", "421 4.7.0"],
  },
  {
    name: "a UTF-8 recipient without SMTPUTF8",
    lines: [EHLO, MAIL, "RCPT TO:<é@d.example>"],
    codes: ["250", "250 2.1.0", "553 5.6.7"],
  },
  {
    name: "a UTF-8 recipient with it",
    lines: [EHLO, `${MAIL} SMTPUTF8`, "RCPT TO:<é@d.example>"],
    codes: ["250", "250 2.1.0", "250 2.1.5"],
  },
  {
    name: "NOOP, VRFY, HELP, unknown, not implemented",
    lines: ["NOOP", "VRFY a", "HELP", "WHAT", "EXPN a", "AUTH PLAIN AAAA"],
    codes: ["250 2.0.0", "252 2.5.0", "214 2.0.0", "500 5.5.1", "502 5.5.1", "502 5.5.1"],
  },
  { name: "nothing after QUIT is read", lines: ["QUIT", "NOOP"], codes: ["221 2.0.0"] },
  { name: "a web browser is disconnected", lines: ["POST / HTTP/1.1", EHLO], codes: ["421 4.7.0"] },
];

describe("each dialogue gets its replies, sent line by line, at once, or octet by octet", () => {
  for (const { name, lines, codes } of dialogues)
    test(name, () => {
      const wire = lines.map((line) => `${line}\r\n`).join("");
      const single = play();
      for (const octet of Buffer.from(wire)) single.raw(String.fromCharCode(octet));
      const stepwise = play();
      for (const line of lines) stepwise.say(line);
      expect(play().raw(wire).codes).toEqual(codes);
      expect(stepwise.codes).toEqual(codes);
      if (/^[\x00-\x7f]*$/.test(wire)) expect(single.codes).toEqual(codes);
    });
});

test("the greeting has our name", () => {
  expect(new Session(OPTIONS).greet()).toEqual([{ kind: "write", text: "220 mx.test ESMTP Postrider\r\n" }]);
});

test("the envelope and the bytes arrive as sent", () => {
  const { asked } = play().say(
    EHLO,
    `${MAIL} SMTPUTF8`,
    RCPT,
    RCPT,
    "RCPT TO:<x@no.example>",
    "RCPT TO:<Postmaster>",
    "DATA",
  );
  const seen = play().say(
    EHLO,
    `${MAIL} SMTPUTF8`,
    RCPT,
    RCPT,
    "RCPT TO:<Postmaster>",
    "DATA",
    "..a",
    "",
    "b",
    ".",
  );
  const envelope = {
    mailFrom: "a@b.example",
    ip: "192.0.2.9",
    helo: "client.example",
    tls: null,
    smtpUtf8: true,
  };
  expect(asked.map((action) => action.kind)).toEqual(["recipient", "recipient", "recipient", "recipient"]);
  expect(asked[0]).toEqual({
    kind: "recipient",
    address: "c@d.example",
    envelope: { ...envelope, rcptTo: [] },
  });
  const message = seen.asked.at(-1);
  if (message?.kind !== "message") throw new Error("no message");
  expect(message.envelope).toEqual({ ...envelope, rcptTo: ["c@d.example", "Postmaster@mx.test"] });
  expect(Buffer.from(message.raw).toString()).toBe(".a\r\n\r\nb\r\n");
});

test("a refused recipient is not in the envelope", () => {
  const { asked } = play().say(EHLO, MAIL, "RCPT TO:<x@no.example>", RCPT, "DATA", ".");
  expect(asked.at(-1)?.envelope.rcptTo).toEqual(["c@d.example"]);
});

test("a faulty message is never accepted", () => {
  for (const body of ["a\nb", "a\rb", "a\0b", "x".repeat(200)]) {
    const { asked } = play().say(EHLO, MAIL, RCPT, "DATA", body, ".");
    expect(asked.map((action) => action.kind)).toEqual(["recipient"]);
  }
});

test("nothing is read while a question is open, and replies keep the order of the commands", () => {
  const { session, kinds, codes, raw } = play({}, false);
  raw([EHLO, MAIL, RCPT, "RCPT TO:<e@f.example>", "DATA", "hi", ".", "NOOP", ""].join("\r\n"));
  expect(kinds).toEqual(["write", "recipient"]);
  expect(codes).toEqual(["250", "250 2.1.0"]);
  expect(session.receive(Buffer.from("NOOP\r\n"))).toEqual([]);
  expect(session.answer(null).map((action) => action.kind)).toEqual(["write", "recipient"]);
  const toMessage = session.answer(reply(450, "4.2.0", "Later"));
  expect(toMessage.map((action) => action.kind)).toEqual(["write", "message"]);
  expect(toMessage[0]).toEqual({
    kind: "write",
    text: `450 4.2.0 Later\r\n354 ${REPLIES.startMail.lines[0]}\r\n`,
  });
  expect(session.answer(TAKEN)).toEqual([
    { kind: "write", text: "250 2.0.0 Taken\r\n250 2.0.0 OK\r\n250 2.0.0 OK\r\n" },
  ]);
});

test("an answer to no question is ignored", () => {
  const { session } = play().say(EHLO);
  expect(session.answer(null)).toEqual([]);
});

describe("lines", () => {
  const longest = `NOOP ${"x".repeat(MAX_COMMAND_LINE_OCTETS - 7)}`;

  test("the longest line is read, and one with an octet more is skipped", () => {
    expect(play().say(longest).codes).toEqual(["250 2.0.0"]);
    expect(play().say(`${longest}x`, "NOOP").codes).toEqual(["500 5.5.2", "250 2.0.0"]);
  });

  test("a line without end is skipped in bounded memory, up to its CRLF", () => {
    const overlong = play();
    for (let round = 0; round < 100; round++) overlong.raw("y".repeat(1000));
    expect(overlong.codes).toEqual([]);
    overlong.raw("\r").raw("\nNOOP\r\n");
    expect(overlong.codes).toEqual(["500 5.5.2", "250 2.0.0"]);
  });

  test("a bare LF or CR ends no line, and a line that contains one is not executed", () => {
    expect(play().raw("NOOP\nNOOP\r").codes).toEqual([]);
    expect(play().raw("NOOP\nNOOP\r\n").codes).toEqual(["500 5.5.2"]);
    expect(play().raw("NOOP\rNOOP\r\n").codes).toEqual(["500 5.5.2"]);
    expect(play().raw("\nNOOP\r\n").codes).toEqual(["500 5.5.2"]);
  });

  test("a line that is not UTF-8 is refused", () => {
    const { session } = play();
    expect(session.receive(Buffer.from("NOOP \xff\r\n", "latin1"))).toEqual([
      { kind: "write", text: "500 5.5.2 The line is not UTF-8\r\n" },
    ]);
  });
});

describe("a client that only makes errors is disconnected", () => {
  test("a client is disconnected at its last allowed error, not before", () => {
    const patient = play().say(...Array.from({ length: MAX_ERRORS - 1 }, () => "WHAT"));
    expect(patient.codes.at(-1)).toBe("500 5.5.1");
    patient.say("WHAT", "NOOP");
    expect(patient.codes.slice(-2)).toEqual(["500 5.5.1", "421 4.7.0"]);
    expect(patient.kinds.at(-1)).toBe("close");
    expect(patient.session.phase).toBe("closed");
  });

  test("a client is disconnected at its last allowed refused recipient, counted over transactions", () => {
    const guess = ["RSET", MAIL, "RCPT TO:<x@no.example>"];
    const guesser = play().say(
      EHLO,
      ...Array.from({ length: MAX_REFUSED_RECIPIENTS - 1 }, () => guess).flat(),
    );
    expect(guesser.codes.at(-1)).toBe("550 5.1.1");
    expect(guesser.say(...guess).codes.slice(-2)).toEqual(["550 5.1.1", "421 4.7.0"]);
  });

  test("if it sends more input ahead of an answer than any client needs", () => {
    const { session } = play({}, false).say(EHLO, MAIL, RCPT);
    expect(session.receive(Buffer.alloc(MAX_WAITING_OCTETS, "x"))).toEqual([]);
    expect(session.receive(Buffer.from("x")).map((action) => action.kind)).toEqual(["write", "close"]);
    expect(session.answer(null)).toEqual([]);
  });
});

describe("STARTTLS", () => {
  test("input sent in plain text after it is never read", () => {
    const { session, kinds, codes } = play().say(EHLO, "STARTTLS", MAIL, RCPT, "DATA");
    expect(codes).toEqual(["250", "220 2.0.0"]);
    expect(kinds.at(-1)).toBe("startTls");
    expect(session.receive(Buffer.from("NOOP\r\n"))).toEqual([]);
    expect(session.secured("TLSv1.3")).toEqual([]);
    expect(session.tls).toBe("TLSv1.3");
  });

  test("the session before it is forgotten", () => {
    const client = play().say(EHLO, MAIL, RCPT, "STARTTLS");
    client.session.secured("TLSv1.3");
    client.say(RCPT, MAIL, EHLO, MAIL, RCPT, "DATA", ".");
    expect(client.codes.slice(-7)).toEqual([
      "503 5.5.1",
      "503 5.5.1",
      "250",
      "250 2.1.0",
      "250 2.1.5",
      "354",
      "250 2.0.0",
    ]);
    expect(client.asked.at(-1)?.envelope.tls).toBe("TLSv1.3");
  });

  test("is neither offered nor accepted twice", () => {
    const client = play().say("STARTTLS");
    client.session.secured("TLSv1.3");
    const [answer] = client.session.receive(Buffer.from(`${EHLO}\r\nSTARTTLS\r\n`));
    expect(answer?.kind === "write" ? answer.text : "").not.toContain("250 STARTTLS");
    expect(answer?.kind === "write" ? answer.text : "").toContain("503 5.5.1");
  });
});

describe("dismissing a session", () => {
  const FAREWELL = {
    kind: "write",
    text: "421 4.3.2 The service is shutting down, try again later\r\n",
  } as const;

  test("dismissing a session ends an idle one at once", () => {
    const { session } = play().say(EHLO, MAIL);
    expect(session.dismiss(REPLIES.shuttingDown)).toEqual([FAREWELL, { kind: "close" }]);
  });

  test("lets a message in transit be read and answered first", () => {
    const { session } = play({}, false).say(EHLO, MAIL, RCPT);
    session.answer(null);
    session.receive(Buffer.from("DATA\r\nhi"));
    expect(session.dismiss(REPLIES.shuttingDown)).toEqual([]);
    expect(session.receive(Buffer.from("\r\n.\r\nNOOP\r\n")).map((action) => action.kind)).toEqual([
      "message",
    ]);
    expect(session.answer(TAKEN)).toEqual([
      { kind: "write", text: `250 2.0.0 Taken\r\n${FAREWELL.text}` },
      { kind: "close" },
    ]);
  });

  test("aborting leaves the current command unanswered", () => {
    const { session } = play({}, false).say(EHLO, MAIL, RCPT);
    expect(session.abort(REPLIES.timeout).map((action) => action.kind)).toEqual(["write", "close"]);
    expect(session.answer(null)).toEqual([]);
  });

  test("dismissing a session sends nothing between STARTTLS and TLS", () => {
    const { session } = play().say("STARTTLS");
    expect(session.dismiss(REPLIES.shuttingDown)).toEqual([{ kind: "close" }]);
  });
});

test("a transaction keeps its number from MAIL to the reply to its message", () => {
  const client = play({}, false);
  const numbers = () => client.session.transaction;
  client.say(EHLO);
  expect(numbers()).toBe(0);
  client.say(MAIL, "RSET", MAIL, RCPT);
  expect(numbers()).toBe(2);
  client.session.answer(null);
  client.say("DATA", ".");
  expect(numbers()).toBe(2);
  client.session.answer(TAKEN);
  expect(numbers()).toBe(0);
  expect(client.session.messages).toBe(1);
});

describe("a large message that will not end gives its memory back", () => {
  const KIB = 1024;
  const part = `${"x".repeat(KIB - 2)}\r\n`.repeat(100);
  const chunk = `BDAT ${part.length}\r\n${part}`;
  const gone = (session: Session): unknown => session.close();
  const ended = (session: Session): unknown => session.abort(REPLIES.timeout);
  const said =
    (line: string) =>
    (session: Session): unknown =>
      session.receive(Buffer.from(`${line}\r\n`));
  const cases: [name: string, begun: string, end: (session: Session) => unknown][] = [
    ["DATA, the peer goes", `DATA\r\n${part}`, gone],
    ["DATA, we end the session", `DATA\r\n${part}`, ended],
    ["BDAT, the peer goes", chunk, gone],
    ["BDAT, the peer goes within a chunk", `BDAT ${part.length + 1}\r\n${part}`, gone],
    ["BDAT, we end the session", chunk, ended],
    ["BDAT and RSET", chunk, said("RSET")],
    ["BDAT and EHLO", chunk, said(EHLO)],
    ["BDAT and HELO", chunk, said("HELO client.example")],
    ["BDAT and STARTTLS", chunk, said("STARTTLS")],
    ["BDAT and QUIT", chunk, said("QUIT")],
  ];
  test.each(cases)("%s", (_, begun, end) => {
    const memory = new MessageMemory(manualClock(), maxSharedOctets(KIB * KIB));
    const { session, say, raw } = play({ maxMessageBytes: KIB * KIB, memory });
    say(EHLO, MAIL, RCPT);
    raw(begun);
    expect([session.held, memory.free]).toEqual([part.length, 0]);
    end(session);
    expect([session.held, memory.free]).toEqual([0, 1]);
  });
});

describe("commands sent far ahead of their replies", () => {
  test("a limited number is answered in a row, and the rest in order when the session is resumed", () => {
    const { session, codes, say } = play();
    const lines = Array.from({ length: 2 * MAX_COMMANDS_IN_A_ROW }, () => "NOOP");
    say(...lines, "VRFY x", "QUIT");
    expect(codes).toHaveLength(MAX_COMMANDS_IN_A_ROW);
    expect(session.hasBacklog).toBe(true);
    expect(session.receive(Buffer.from("NOOP\r\n"))).toEqual([]);
    expect(repliesIn(session.proceed())).toBe(MAX_COMMANDS_IN_A_ROW);
    expect(session.hasBacklog).toBe(true);
    expect(session.proceed().map((action) => ("text" in action ? action.text : action.kind))).toEqual([
      "252 2.5.0 Cannot verify; send the message and see\r\n221 2.0.0 Goodbye\r\n",
      "close",
    ]);
    expect(session.hasBacklog).toBe(false);
    expect(session.proceed()).toEqual([]);
  });

  test("too many of them end the session, as they do while a question is open", () => {
    const { session } = play();
    session.receive(Buffer.from("NOOP\r\n".repeat(MAX_COMMANDS_IN_A_ROW + 1)));
    const actions = session.receive(Buffer.alloc(MAX_WAITING_OCTETS, "x"));
    expect(actions).toMatchObject([
      { kind: "write", text: expect.stringMatching(/^421 /) },
      { kind: "close" },
    ]);
  });

  test("commands sent far ahead of their replies are dropped if the session is dismissed", () => {
    const { session } = play();
    session.receive(Buffer.from("NOOP\r\n".repeat(3 * MAX_COMMANDS_IN_A_ROW)));
    expect(repliesIn(session.dismiss(REPLIES.shuttingDown))).toBe(1);
    expect(session.hasBacklog).toBe(false);
  });

  test("if one of them asks a question, its answer resumes the session", () => {
    const { codes, say, session } = play();
    const noops = Array.from({ length: MAX_COMMANDS_IN_A_ROW - 3 }, () => "NOOP");
    say(EHLO, MAIL, ...noops, RCPT, "DATA", "hi", ".", "NOOP");
    expect(session.hasBacklog).toBe(false);
    expect(codes.slice(-4)).toEqual(["250 2.1.5", "354", "250 2.0.0", "250 2.0.0"]);
  });
});

function repliesIn(actions: readonly Action[]): number {
  const text = actions.flatMap((action) => (action.kind === "write" ? [action.text] : [])).join("");
  return text.match(/^\d{3} /gm)?.length ?? 0;
}
