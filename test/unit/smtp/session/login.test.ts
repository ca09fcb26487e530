import { describe, expect, test } from "bun:test";
import type { Action } from "../../../../src/smtp/session/actions.ts";
import type { Envelope } from "../../../../src/smtp/session/envelope.ts";
import type { LoginRules } from "../../../../src/smtp/session/login.ts";
import { REPLIES, reply } from "../../../../src/smtp/session/reply.ts";
import { Session } from "../../../../src/smtp/session/session.ts";
import { MAX_LOGIN_FAILURES } from "../../../../src/smtp/session/session-limits.ts";

const OPTIONS = { hostname: "mx.test", maxMessageBytes: 100, maxRecipients: 3, ip: "192.0.2.9" };
const REQUIRED: LoginRules = { required: true, inPlainText: false, recipient: () => null };
const PASSWORD = "pr_secret";

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

const PLAIN = `AUTH PLAIN ${base64(`\0ana\0${PASSWORD}`)}`;
const WRONG = `AUTH PLAIN ${base64("\0ana\0wrong")}`;
const EHLO = "EHLO client.example";
const MAIL = "MAIL FROM:<a@b.example>";
const RCPT = "RCPT TO:<c@d.example>";

interface Dialogue {
  codes: string[];
  text: string;
  envelopes: Envelope[];
}

/** Plays lines under TLS. The handler accepts one password, every recipient and every message. */
function play(lines: readonly string[], rules: LoginRules | null = REQUIRED, tls = true): Dialogue {
  const session = new Session({ ...OPTIONS, ...(rules === null ? {} : { logins: rules }) });
  const seen: Dialogue = { codes: [], text: "", envelopes: [] };
  const see = (actions: Action[]): void => {
    for (const action of actions) {
      if (action.kind === "write") seen.text += action.text;
      if (action.kind === "recipient") see(session.answer(null));
      if (action.kind === "message") {
        seen.envelopes.push(action.envelope);
        see(session.answer(reply(250, "2.0.0", "Taken")));
      }
      if (action.kind === "login") {
        const right = action.credentials.password === PASSWORD;
        see(session.answer(right ? { identity: "key 1" } : REPLIES.wrongLogin));
      }
    }
  };
  if (tls) {
    session.receive(Buffer.from("STARTTLS\r\n"));
    session.secured("TLSv1.3");
  }
  for (const line of lines) see(session.receive(Buffer.from(`${line}\r\n`)));
  seen.codes = [...seen.text.matchAll(/^(\d{3}(?: \d\.\d\.\d+)?) /gm)].map(([, code = ""]) => code);
  return seen;
}

const LOGIN = [base64("ana"), base64(PASSWORD)];
const FOLLOWED = [
  ["AUTH PLAIN with an initial response", [PLAIN], ["235 2.7.0"]],
  ["AUTH PLAIN without one", ["AUTH PLAIN", base64(`\0ana\0${PASSWORD}`)], ["334", "235 2.7.0"]],
  ["an authorization identity", [`AUTH PLAIN ${base64(`x\0ana\0${PASSWORD}`)}`], ["235 2.7.0"]],
  ["AUTH LOGIN", ["auth login", ...LOGIN], ["334", "334", "235 2.7.0"]],
  ["AUTH LOGIN with the user name", [`AUTH LOGIN ${LOGIN[0]}`, LOGIN[1]], ["334", "235 2.7.0"]],
  ["an empty user name", ["AUTH LOGIN =", LOGIN[1]], ["334", "235 2.7.0"]],
  ["a wrong password", [WRONG], ["535 5.7.8"]],
  ["a right one after a wrong one", [WRONG, PLAIN], ["535 5.7.8", "235 2.7.0"]],
  ["a canceled exchange", ["AUTH PLAIN", "*", "NOOP"], ["334", "501 5.7.0", "250 2.0.0"]],
  ["no base64", ["AUTH PLAIN", "!!!!"], ["334", "501 5.5.2"]],
  ["no UTF-8", [`AUTH PLAIN ${Buffer.from("\0\xff\0x", "latin1").toString("base64")}`], ["501 5.5.2"]],
  ["too few parts", [`AUTH PLAIN ${base64("ana")}`], ["501 5.5.2"]],
  ["too many parts", [`AUTH PLAIN ${base64("\0a\0b\0c")}`], ["501 5.5.2"]],
  ["a password over the limit", [`AUTH PLAIN ${base64(`\0a\0${"x".repeat(513)}`)}`], ["501 5.5.2"]],
  ["a line over the limit", ["AUTH PLAIN", "A".repeat(2048), "NOOP"], ["334", "500 5.5.2", "250 2.0.0"]],
  ["an unknown mechanism", ["AUTH CRAM-MD5"], ["504 5.5.4"]],
  ["a command without a mechanism", ["AUTH"], ["501 5.5.4"]],
  ["a second login", [PLAIN, PLAIN], ["235 2.7.0", "503 5.5.1"]],
  ["MAIL before AUTH", [MAIL], ["530 5.7.0"]],
  ["AUTH after MAIL", [PLAIN, MAIL, PLAIN], ["235 2.7.0", "250 2.1.0", "503 5.5.1"]],
] as const;

describe("a session that asks for a login", () => {
  test.each(FOLLOWED)("answers %s", (_, lines, codes) => {
    expect(play([EHLO, ...lines.map(String)]).codes.slice(1)).toEqual([...codes]);
  });

  test("offers AUTH under TLS only, and refuses it in plain text", () => {
    expect(play([EHLO]).text).toContain("250 AUTH PLAIN LOGIN\r\n");
    const plain = play([EHLO, PLAIN, MAIL], REQUIRED, false);
    expect(plain.text).not.toContain("AUTH PLAIN LOGIN");
    expect(plain.codes.slice(1)).toEqual(["538 5.7.11", "530 5.7.0"]);
  });

  test("offers it in plain text if the rules say so", () => {
    const rules = { ...REQUIRED, inPlainText: true };
    expect(play([EHLO, PLAIN, MAIL], rules, false).codes.slice(1)).toEqual(["235 2.7.0", "250 2.1.0"]);
  });

  test("a session that asks for a login takes mail without a login if none is required", () => {
    const seen = play([EHLO, MAIL, RCPT, "DATA", "."], { ...REQUIRED, required: false }, false);
    expect(seen.codes.at(-1)).toBe("250 2.0.0");
    expect(seen.envelopes[0]).not.toHaveProperty("login");
  });

  test("a session that asks for a login names the client in every envelope after the login", () => {
    const seen = play([EHLO, PLAIN, MAIL, RCPT, "DATA", ".", EHLO, MAIL, RCPT, "DATA", "."]);
    const login = { user: "ana", identity: "key 1" };
    expect(seen.envelopes.map((envelope) => envelope.login)).toEqual([login, login]);
  });

  test("a session that asks for a login ends after five wrong passwords", () => {
    const seen = play([EHLO, ...Array.from({ length: MAX_LOGIN_FAILURES + 1 }, () => WRONG)]);
    expect(seen.codes.slice(1)).toEqual([
      ...Array.from({ length: MAX_LOGIN_FAILURES }, () => "535 5.7.8"),
      "421 4.7.0",
    ]);
  });

  test("a session that asks for a login takes parameters that programs send to any server, and refuses malformed ones", () => {
    const lines = [
      `${MAIL} RET=HDRS ENVID=abc AUTH=<>`,
      `${RCPT} NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;c@d.example`,
      "RSET",
      `${MAIL} RET=ALL`,
      `${MAIL} FOO=1`,
    ];
    const codes = ["250 2.1.0", "250 2.1.5", "250 2.0.0", "501 5.5.4", "555 5.5.4"];
    expect(play([EHLO, PLAIN, ...lines]).codes.slice(2)).toEqual(codes);
  });

  test("a session that asks for a login takes several recipients of a message with an empty return path", () => {
    const lines = ["MAIL FROM:<>", RCPT, "RCPT TO:<e@d.example>"];
    expect(play([EHLO, PLAIN, ...lines]).codes.slice(2)).toEqual(["250 2.1.0", "250 2.1.5", "250 2.1.5"]);
  });
});

test("a server of incoming mail neither offers nor knows AUTH", () => {
  const seen = play([EHLO, PLAIN, `${MAIL} AUTH=<>`, MAIL, `${RCPT} NOTIFY=NEVER`], null);
  expect(seen.text).not.toContain("AUTH");
  expect(seen.codes.slice(1)).toEqual(["502 5.5.1", "555 5.5.4", "250 2.1.0", "555 5.5.4"]);
});

test("STARTTLS forgets a login that came in plain text", () => {
  const session = new Session({ ...OPTIONS, logins: { ...REQUIRED, inPlainText: true } });
  session.receive(Buffer.from(`${EHLO}\r\n${PLAIN}\r\n`));
  session.answer({ identity: "key 1" });
  session.receive(Buffer.from("STARTTLS\r\n"));
  session.secured("TLSv1.3");
  const actions = session.receive(Buffer.from(`${EHLO}\r\n${MAIL}\r\n`));
  expect(actions).toEqual([{ kind: "write", text: expect.stringContaining("530 5.7.0") }]);
});

test("a session under implicit TLS greets after the handshake, and offers no STARTTLS", () => {
  const session = new Session({ ...OPTIONS, logins: REQUIRED, implicitTls: true });
  expect(session.receive(Buffer.from("EHLO x\r\n"))).toEqual([]);
  expect(session.secured("TLSv1.3")).toEqual([{ kind: "write", text: "220 mx.test ESMTP Postrider\r\n" }]);
  const [said] = session.receive(Buffer.from("EHLO x\r\n"));
  expect(said).toMatchObject({ text: expect.not.stringContaining("STARTTLS") });
});
