import { describe, expect, test } from "bun:test";
import { REPLIES } from "../../../../src/smtp/session/reply.ts";
import { Session } from "../../../../src/smtp/session/session.ts";
import { MAX_ERRORS } from "../../../../src/smtp/session/session-limits.ts";
import { recordSession } from "../../../../src/smtp/listener/session-metrics.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const OPTIONS = { hostname: "mx.test", ip: "192.0.2.1", maxMessageBytes: 100, maxRecipients: 10, tls: null };

/** Runs a session of three seconds. Returns the reports to the meter. */
function run(drive: (session: Session) => void, options: object = {}): unknown[] {
  const clock = manualClock();
  const told: unknown[] = [];
  const watch = recordSession(clock, {
    sessionEnded: (seconds, end) => void told.push([end, seconds]),
    messageRefused: (reason) => void told.push(reason),
  });
  const session = new Session({ ...OPTIONS, ...options, onReply: watch.replied } as ConstructorParameters<
    typeof Session
  >[0]);
  session.greet();
  drive(session);
  clock.advance(3000);
  watch.ended();
  return told;
}

const say = (session: Session, ...lines: string[]): void =>
  void session.receive(Buffer.from(lines.map((line) => `${line}\r\n`).join("")));

const BEGIN = ["EHLO c.test", "MAIL FROM:<a@c.test>", "RCPT TO:<b@mx.test>"];
const begin = (session: Session): void => {
  say(session, ...BEGIN);
  session.answer(null);
  say(session, "DATA");
};

describe("a session", () => {
  const ends: [end: string, drive: (session: Session) => void][] = [
    ["quit", (session) => say(session, "QUIT")],
    ["dropped", (session) => say(session, "EHLO c.test")],
    ["dropped", () => undefined],
    ["timeout", (session) => session.abort(REPLIES.timeout)],
    ["crowded", (session) => session.abort(REPLIES.tooSlow)],
    ["early_talker", (session) => session.abort(REPLIES.earlyTalker)],
    ["shutdown", (session) => session.dismiss(REPLIES.shuttingDown)],
    ["not_smtp", (session) => say(session, "GET / HTTP/1.1")],
    ["errors", (session) => say(session, ...Array.from({ length: MAX_ERRORS }, () => "WHAT"))],
    ["errors", (session) => say(session, ...BEGIN.slice(0, 2), "BDAT x")],
  ];
  test.each(ends)("a session counts as %s by its last word", (end, drive) => {
    expect(run(drive)).toEqual([[end, 3]]);
  });

  const refusals: [reason: string, body: string][] = [
    ["too_large", `${"x".repeat(101)}\r\n.`],
    ["bare_line_end", "a\nb\r\n."],
    ["nul", "a\0b\r\n."],
  ];
  test.each(refusals)("a session reports a message refused as %s", (reason, body) => {
    const told = run((session) => {
      begin(session);
      say(session, body, "QUIT");
    });
    expect(told).toEqual([reason, [reason === "too_large" ? "quit" : "errors", 3]]);
  });

  test("a session reports a message for which there is no room", () => {
    const drive = (session: Session): void => {
      begin(session);
      say(session, "QUIT");
    };
    expect(run(drive, { hasRoom: () => false })).toEqual(["no_room", ["quit", 3]]);
  });

  test("a session reports no message that is accepted", () => {
    const told = run((session) => {
      begin(session);
      say(session, "Hi", ".");
      session.answer(null);
      say(session, "QUIT");
    });
    expect(told).toEqual([["quit", 3]]);
  });
});
