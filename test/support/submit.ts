import { Client } from "../smtp/server-harness.ts";
import type { TestService } from "./service.ts";

/** A message to submit, and how. */
export interface ToSubmit {
  /** Lines of the header, without Date and Message-ID unless given. */
  header?: readonly string[];
  body?: string;
  /** All lines, in place of header and body. */
  message?: string;
  mailFrom?: string;
  to?: readonly string[];
  /** The password; null for no login. */
  key?: string | null;
  user?: string;
  /** Parameters of MAIL. */
  parameters?: string;
}

export const FROM = "shop@from.test";
export const TO = "ben@to.test";

/** Returns the port for submissions of a test service. */
export function submissionPort({ app }: TestService): number {
  return app.ports.submission ?? 0;
}

/** Logs in. Returns the client after EHLO and AUTH, in plain text. */
export async function loggedIn(service: TestService, key: string, user = ""): Promise<Client> {
  const client = await Client.connect(submissionPort(service));
  await client.say("EHLO client.test");
  const answer = await client.say(`AUTH PLAIN ${Buffer.from(`\0${user}\0${key}`).toString("base64")}`);
  if (!answer.startsWith("235")) throw new Error(`the login failed: ${answer}`);
  return client;
}

/** Submits a message in a separate session. Returns the last reply, without its line end. */
export async function submit(service: TestService, what: ToSubmit = {}): Promise<string> {
  const { key = service.projectKey, user = "" } = what;
  const client =
    key === null ? await Client.connect(submissionPort(service)) : await loggedIn(service, key, user);
  if (key === null) await client.say("EHLO client.test");
  const answer = await submitIn(client, what);
  client.destroy();
  return answer;
}

/** Submits a message in an open session. Returns the reply to its end, or the first one that refuses it. */
export async function submitIn(client: Client, what: ToSubmit): Promise<string> {
  const { mailFrom = FROM, to = [TO], parameters = "" } = what;
  for (const line of [
    `MAIL FROM:<${mailFrom}>${parameters}`,
    ...to.map((one) => `RCPT TO:<${one}>`),
    "DATA",
  ]) {
    const answer = await client.say(line);
    if (!/^[23]/.test(answer)) return answer.trimEnd();
  }
  client.send(Buffer.from(`${messageOf(what).replaceAll("\r\n.", "\r\n..")}.\r\n`));
  return (await client.reply()).trimEnd();
}

export function messageOf({
  header = [`From: ${FROM}`, `To: ${TO}`, "Subject: Hello"],
  body = "Hi\r\n",
  message,
}: ToSubmit): string {
  return message ?? `${header.join("\r\n")}\r\n\r\n${body}`;
}

/** Returns the id in a final reply. */
export function idIn(answer: string): string {
  const id = /^250 2\.0\.0 queued as (msg_[0-9a-z]{26})$/.exec(answer)?.[1];
  if (id === undefined) throw new Error(`not accepted: ${answer}`);
  return id;
}

/** Reads a message's bytes as they are sent. */
export async function rawOf(service: TestService, id: string): Promise<string> {
  const headers = { authorization: `Bearer ${service.projectKey}` };
  const answer = await fetch(`${service.url}/v1/emails/${id}/raw`, { headers });
  return Buffer.from(await answer.arrayBuffer()).toString("latin1");
}
