import { connect } from "node:net";
import type { TestService } from "./service.ts";

/** If a server does not answer within this time, the test fails. */
const ANSWER_MS = 10_000;

/** An SMTP session by hand. */
export interface SmtpSession {
  /** Sends a line and resolves with the last line of its reply. */
  say(line: string): Promise<string>;
  end(): void;
}

/** Opens a session and greets. */
export async function smtpSession(port: number): Promise<SmtpSession> {
  const socket = connect(port, "127.0.0.1");
  socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("the server does not answer")));
  let text = "";
  let waiting: PromiseWithResolvers<string> | null = null;
  const look = (): void => {
    const reply = /^(\d{3} [^\r]*)\r\n/m.exec(text);
    if (reply === null || waiting === null) return;
    text = text.slice(reply.index + reply[0].length);
    waiting.resolve(reply[1] ?? "");
    waiting = null;
  };
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    look();
  });
  socket.on("error", (error) => waiting?.reject(error));
  const answer = (): Promise<string> => {
    waiting = Promise.withResolvers<string>();
    const { promise } = waiting;
    look();
    return promise;
  };
  await answer();
  const session: SmtpSession = {
    say(line) {
      socket.write(`${line}\r\n`, "utf8");
      return answer();
    },
    end: () => void socket.end(),
  };
  await session.say("EHLO client.test");
  return session;
}

export interface Letter {
  to: string | readonly string[];
  /** Reverse path; "" is the null reverse path. */
  mailFrom?: string;
  /** Header lines without line ends. If none is a From, one is added at the top. */
  headers?: readonly string[];
  body?: string;
}

/** The lines that a letter is on the wire. */
export function letterLines({ headers = [], body = "Hi" }: Letter): string[] {
  const from = headers.some((line) => /^from:/i.test(line)) ? [] : ["From: Ada <ada@client.test>"];
  return [...from, ...headers, "", body];
}

/** Delivers a letter to the service, as `deliverTo` does. */
export function deliver(service: TestService, letter: Letter): Promise<string> {
  return deliverTo(service.smtpPort, letter);
}

/** Delivers a letter over SMTP, as `deliverRaw` does. */
export function deliverTo(smtpPort: number, letter: Letter): Promise<string> {
  return deliverRaw(smtpPort, letter, `${letterLines(letter).join("\r\n")}\r\n`);
}

/** Delivers a message as it is. Resolves with the reply to the end of DATA, or to the command that was refused. */
export async function deliverRaw(
  smtpPort: number,
  { to, mailFrom = "ada@client.test" }: Pick<Letter, "to" | "mailFrom">,
  raw: string,
): Promise<string> {
  const session = await smtpSession(smtpPort);
  try {
    const recipients = [to].flat().map((address) => `RCPT TO:<${address}>`);
    for (const command of [`MAIL FROM:<${mailFrom}>`, ...recipients, "DATA"]) {
      const reply = await session.say(command);
      if (!/^[23]/.test(reply)) return reply;
    }
    return await session.say(`${raw}.`);
  } finally {
    session.end();
  }
}

/** Delivers a letter and returns the id in the reply. Throws if it was refused. */
export async function delivered(service: TestService, letter: Letter): Promise<string> {
  const reply = await deliver(service, letter);
  const id = /^250 .*(msg_[0-9a-z]{26})/.exec(reply)?.[1];
  if (id === undefined) throw new Error(`not taken: ${reply}`);
  return id;
}

/** Delivers a letter and returns its record. */
export async function deliveredRecord(service: TestService, letter: Letter) {
  return (await service.call("GET", `/v1/emails/${await delivered(service, letter)}`)).body;
}
