import { afterAll, beforeAll, expect } from "bun:test";
import { deliveredRecord } from "./mail-in.ts";
import { type ApiAnswer, receivingInboxes, startService, type TestService } from "./service.ts";

export interface Box {
  id: string;
  address: string;
}

/** The service of one test file, whose domain `in.test` receives. */
export interface InboxService {
  /** Available from the first test on. */
  readonly service: TestService;
  /** An inbox that no other test has. */
  newInbox(body?: Record<string, unknown>): Promise<Box>;
  /** A Message-ID that no other mail has. */
  newMessageId(): string;
  reply(
    threadId: string,
    body?: Record<string, unknown>,
    headers?: Record<string, string>,
  ): Promise<ApiAnswer>;
  /** Replies, and returns the record of the accepted message. */
  replied(threadId: string, body?: Record<string, unknown>): Promise<ApiAnswer["body"]>;
  /**
   * Delivers a letter to a new inbox, whose local part replaces `BOX` in its headers. Returns the record of a reply
   * to it.
   */
  answerTo(headers: readonly string[], body?: Record<string, unknown>): Promise<ApiAnswer["body"]>;
}

/** Starts the service before the file's tests and stops it after them. */
export function inboxService(): InboxService {
  let running: TestService | null = null;
  let count = 0;
  beforeAll(async () => {
    running = await startService();
    await receivingInboxes(running, "in.test", []);
  });
  afterAll(() => running?.stop());

  const own: InboxService = {
    get service() {
      if (running === null) throw new Error("the service runs in tests only");
      return running;
    },
    async newInbox(body = {}) {
      const address = `box${++count}@in.test`;
      return (await own.service.call("POST", "/v1/inboxes", { address, ...body })).body;
    },
    newMessageId: () => `<m${++count}@client.test>`,
    reply: (threadId, body = {}, headers = {}) =>
      own.service.call("POST", `/v1/threads/${threadId}/reply`, { text: "An answer", ...body }, { headers }),
    async replied(threadId, body) {
      const answer = await own.reply(threadId, body);
      expect(answer).toMatchObject({ status: 202, body: { threadId } });
      return (await own.service.call("GET", `/v1/emails/${answer.body.id}`)).body;
    },
    async answerTo(headers, body) {
      const { address } = await own.newInbox();
      const box = address.replace("@in.test", "");
      const letter = { to: address, headers: headers.map((line) => line.replaceAll("BOX", box)) };
      return own.replied((await deliveredRecord(own.service, letter)).threadId, body);
    },
  };
  return own;
}
