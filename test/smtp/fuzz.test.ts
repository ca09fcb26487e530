import { expect, setDefaultTimeout, test } from "bun:test";
import type { Action, Phase } from "../../src/smtp/session/actions.ts";
import { ChunkReader } from "../../src/smtp/session/chunks.ts";
import { DataReader } from "../../src/smtp/session/data.ts";
import type { MessageResult } from "../../src/smtp/session/message-buffer.ts";
import { MAX_REPLY_LINE_OCTETS, REPLIES, type Reply, reply } from "../../src/smtp/session/reply.ts";
import { Session } from "../../src/smtp/session/session.ts";
import { mutatedSession, mutatedText, type Numbers, numbers, pieces } from "./mutations.ts";

setDefaultTimeout(180_000);

const SESSIONS = 10_000;
const TEXTS = 20_000;
const MAX = 256;
const OPTIONS = { hostname: "mx.test", maxMessageBytes: MAX, maxRecipients: 3, ip: "192.0.2.9" };

/** For each action: the transaction it may occur in, the one it leaves, and the session's phase afterwards. */
const ALLOWED: Record<Exclude<Action["kind"], "write">, (seen: Seen) => boolean> = {
  recipient: (seen) => seen.open && !seen.closed,
  message: (seen) => seen.open && seen.accepted > 0 && !seen.closed,
  // A server of incoming mail knows no AUTH.
  login: () => false,
  startTls: (seen) => !seen.tls && !seen.closed,
  close: (seen) => !seen.closed,
};
/** Phases in which a session may be if an action was its last. */
const PHASES: Record<Action["kind"], readonly Phase[]> = {
  write: ["command", "data"],
  recipient: ["waiting"],
  message: ["waiting"],
  login: ["waiting"],
  startTls: ["tls"],
  close: ["closed"],
};

/** A session as seen from outside. */
interface Seen {
  text: string;
  kinds: string;
  open: boolean;
  accepted: number;
  tls: boolean;
  closed: boolean;
}

class Broken extends Error {}

function demand(holds: boolean, rule: string): void {
  if (!holds) throw new Broken(rule);
}

/** Verdicts depend only on the question, so that a replayed session gets the same ones. */
function verdict(action: Action): Reply | null {
  if (action.kind === "message")
    return action.raw.length % 5 === 0 ? REPLIES.localTrouble : reply(250, "2.0.0", "Taken");
  if (action.kind !== "recipient" || action.address.length % 7 === 0) return reply(451, "4.3.0", "Later");
  return action.address.includes("no.") ? reply(550, "5.1.1", "No\r\n250 forged") : null;
}

const REPLY = /(?:(\d{3})-[\x20-\x7e]*\r\n(?=\1))*(\d{3}) [\x20-\x7e]*\r\n/y;

/** Codes of the replies. Throws if the text is not a series of replies. */
function codes(text: string): string[] {
  const found: string[] = [];
  REPLY.lastIndex = 0;
  while (REPLY.lastIndex < text.length) {
    const match = REPLY.exec(text);
    if (match === null) throw new Broken(`no reply: ${JSON.stringify(text)}`);
    demand(/^[2-5][0-5][0-9]$/.test(match[2] ?? ""), "a code is one of RFC 5321");
    demand(
      match[0].split("\r\n").every((line) => line.length <= MAX_REPLY_LINE_OCTETS - 2),
      "a line is 512 octets at most",
    );
    found.push(match[2] ?? "");
  }
  return found;
}

/** Records actions and checks them against the table. */
function see(seen: Seen, session: Session, actions: readonly Action[]): Action | null {
  let question: Action | null = null;
  for (const action of actions) {
    demand(question === null, "nothing follows a question");
    seen.kinds += action.kind[0];
    if (action.kind === "write") {
      demand(!seen.closed && action.text !== "", "nothing is written after the end");
      seen.text += action.text;
      if (action.text.includes("250 2.1.0 Sender OK\r\n")) Object.assign(seen, { open: true, accepted: 0 });
      continue;
    }
    demand(ALLOWED[action.kind](seen), `${action.kind} is not allowed here`);
    if (action.kind === "recipient" || action.kind === "message") question = action;
    if (action.kind === "message") checkMessage(seen, action);
    if (action.kind === "startTls") seen.tls = true;
    if (action.kind === "close") seen.closed = true;
  }
  const last = actions.at(-1);
  if (last !== undefined)
    demand(PHASES[last.kind].includes(session.phase), `${last.kind} leads to ${session.phase}`);
  demand(session.held <= MAX && (!seen.closed || session.held === 0), "no more is held than one message");
  return question;
}

function checkMessage(seen: Seen, { envelope, raw }: Action & { kind: "message" }): void {
  demand(
    envelope.rcptTo.length > 0 && envelope.rcptTo.length <= OPTIONS.maxRecipients,
    "recipients are within the limit",
  );
  demand(envelope.rcptTo.length <= seen.accepted, "only accepted recipients have mail");
  demand(new Set(envelope.rcptTo).size === envelope.rcptTo.length, "each recipient is named once");
  demand(envelope.helo !== "" && (envelope.tls !== null) === seen.tls, "greeted, and under TLS as it stands");
  const text = Buffer.from(raw).toString("latin1");
  demand(raw.length <= MAX && !text.includes("\0"), "size and NUL are held");
  demand(!/\r(?!\n)|(?<!\r)\n/.test(text), "every line end is CRLF");
  demand(text === "" || text.endsWith("\r\n"), "the last line has its end");
  Object.assign(seen, { open: false, accepted: 0 });
}

/** Plays octets. Each piece is consumed before the next. Questions are answered at once, or some pieces later. */
function play(seen: Seen, session: Session, parts: readonly Buffer[], late: Numbers | null): void {
  let question: Action | null = null;
  const settle = (): void => {
    while (question !== null) {
      const answer = verdict(question);
      if (question.kind === "recipient" && answer === null) seen.accepted++;
      question = see(seen, session, session.answer(answer));
    }
  };
  for (const part of parts) {
    question = see(seen, session, session.receive(part)) ?? question;
    if (late === null || late(3) === 0) settle();
  }
  settle();
}

/** A whole session: the octets, and if it asks for TLS, more octets. */
function whole(first: Buffer[], second: Buffer[], late: Numbers | null): { seen: Seen; plain: number } {
  const seen: Seen = { text: "", kinds: "", open: false, accepted: 0, tls: false, closed: false };
  const session = new Session(OPTIONS);
  play(seen, session, first, late);
  const plain = seen.text.length;
  if (session.phase === "tls") {
    Object.assign(seen, { open: false, accepted: 0 });
    see(seen, session, session.secured("TLSv1.3"));
    play(seen, session, second, late);
  }
  return { seen, plain };
}

/**
 * Checks the replies against the octets by an independent reading: each line has one reply, and so has the content
 * after a 354 or a BDAT. Stops where the session or the octets end.
 */
function checkCount(wire: string, text: string): void {
  const answers = codes(text);
  let at = 0;
  let used = 0;
  const answered = (): string => answers[used++] ?? "";
  while (used < answers.length) {
    const end = wire.indexOf("\r\n", at);
    if (end < 0) break;
    const line = wire.slice(at, end);
    at = end + 2;
    const size = /^bdat[ \t]+([0-9]{1,20})(?: +last)?\s*$/i.exec(line)?.[1];
    if (size !== undefined && Number(size) <= MAX && !/[\0-\x08\x0a-\x1f\x7f-\xff]/.test(line))
      at += Number(size);
    const code = answered();
    if (code === "421" || code === "221") break;
    if (code !== "354") continue;
    const from = wire.startsWith(".\r\n", at) ? at - 2 : wire.indexOf("\r\n.\r\n", at);
    if (from < 0) break;
    at = from + 5;
    answered();
  }
  // The 421 that ends a session after too many errors comes with the reply to the last of them.
  if (answers[used] === "421") used++;
  demand(used === answers.length, `${answers.length} replies, ${used} accounted for`);
}

function failure(seed: number, body: () => void): string | null {
  try {
    body();
    return null;
  } catch (error) {
    return `seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`;
  }
}

function fuzzSession(seed: number): void {
  const next = numbers(seed);
  const [first, second] = [mutatedSession(next), mutatedSession(next)];
  const { seen, plain } = whole([first], [second], null);
  const cut = whole(pieces(first, next), pieces(second, next), next);
  demand(cut.seen.text === seen.text, "the replies are the same however the octets come");
  demand(cut.seen.kinds.replaceAll("w", "") === seen.kinds.replaceAll("w", ""), "so is what was asked for");
  checkCount(first.toString("latin1"), seen.text.slice(0, plain));
  checkCount(second.toString("latin1"), seen.text.slice(plain));
}

/** Ends a session from our side at a random moment. */
function fuzzEnding(seed: number): void {
  const next = numbers(seed);
  const seen: Seen = { text: "", kinds: "", open: false, accepted: 0, tls: false, closed: false };
  const session = new Session(OPTIONS);
  const parts = pieces(mutatedSession(next), next);
  play(seen, session, parts.slice(0, next(parts.length + 1)), null);
  const late = next(2) === 0 ? session.abort(REPLIES.timeout) : session.dismiss(REPLIES.shuttingDown);
  see(seen, session, late);
  play(seen, session, parts, null);
  if (session.phase !== "data")
    demand(session.phase === "closed", `a dismissed session is in ${session.phase}`);
  for (const action of [session.receive(Buffer.from("NOOP\r\n.\r\nNOOP\r\n")), session.answer(null)].flat())
    demand(!seen.closed, `${action.kind} after the end`);
}

test(`${SESSIONS} mutated sessions keep the rules, however their octets are split`, () => {
  for (let seed = 1; seed <= SESSIONS; seed++) expect(failure(seed, () => fuzzSession(seed))).toBeNull();
});

test("a session that we end at any moment sends nothing more", () => {
  for (let seed = 1; seed <= TEXTS; seed++) expect(failure(seed, () => fuzzEnding(seed))).toBeNull();
});

function show(result: MessageResult | null): string {
  if (result === null) return "(more)";
  return "fault" in result ? result.fault : Buffer.from(result.raw).toString("latin1");
}

/** The rules of a message, applied to the whole of it. */
function judged(message: string, max: number): string {
  if (/\r(?!\n)|(?<!\r)\n/.test(message)) return "bareLineEnd";
  if (message.includes("\0")) return "nul";
  return message.length > max ? "tooLarge" : message;
}

test("messages after DATA end where a search for CRLF.CRLF says", () => {
  for (let seed = 1; seed <= TEXTS; seed++) {
    const next = numbers(seed);
    const wire = `${mutatedText(next)}\r\n.\r\n${mutatedText(next)}`;
    const max = next(20);
    const end = wire.startsWith(".\r\n") ? 3 : wire.indexOf("\r\n.\r\n") + 5;
    const lines = wire.slice(0, end - 3).replace(/(^|\r\n)\./g, "$1");
    const reader = new DataReader(max);
    let consumed = 0;
    for (const piece of pieces(Buffer.from(wire, "latin1"), next)) {
      const at = reader.feed(piece, 0);
      consumed += at < 0 ? piece.length : at;
      if (at >= 0) break;
    }
    expect([seed, consumed, show(reader.result())]).toEqual([seed, end, judged(lines, max)]);
  }
});

test("chunks are read as their concatenation would be", () => {
  for (let seed = 1; seed <= TEXTS; seed++) {
    const next = numbers(seed);
    const text = mutatedText(next);
    const max = next(30);
    const reader = new ChunkReader(max);
    let result: MessageResult | null = null;
    for (const chunk of pieces(Buffer.from(text, "latin1"), next)) {
      for (const piece of pieces(chunk, next)) reader.feed(piece);
      result ??= reader.end(false);
      expect(reader.held).toBeLessThanOrEqual(max);
    }
    const whole = text === "" || text.endsWith("\n") ? text : `${text}\r\n`;
    // The added line end does not count.
    const limit = max + whole.length - text.length;
    const expected = text.endsWith("\r") ? "bareLineEnd" : judged(whole, limit);
    if (result === null) expect([seed, show(reader.end(true))]).toEqual([seed, expected]);
    // A fault that a chunk showed may not be the most important one of all.
    else expect([seed, "fault" in result, expected !== text]).toEqual([seed, true, true]);
  }
});
