import { expect, test } from "bun:test";
import { ownAddresses, participantsOf } from "../../../../src/flows/accept/threading.ts";
import type { Message } from "../../../../src/store/messages/messages.ts";
import { MAX_PARTICIPANTS, stepThread } from "../../../../src/store/threads/threads.ts";

test("only as many of the thousands that a message names are read as its thread shows", () => {
  let looked = 0;
  const to = Array.from({ length: 1000 }, (_, at) => ({
    get email() {
      looked++;
      return at % 2 === 0 ? `box+${at}@in.test` : `p${at}@client.test`;
    },
  }));
  const message = { from: { email: "ada@client.test" }, to, cc: to } as unknown as Message;
  const { args = [] } = stepThread({
    threadId: "t",
    inboxId: "i",
    senderId: "s",
    messageId: "m",
    subject: "",
    preview: "",
    participants: participantsOf(message, ownAddresses("box@in.test", [])),
    hasAttachments: false,
    inbound: true,
    at: 0,
  });
  const others = Array.from({ length: MAX_PARTICIPANTS - 1 }, (_, at) => `p${2 * at + 1}@client.test`);
  expect(args).toContain(JSON.stringify(["ada@client.test", ...others]));
  expect(looked).toBe(2 * (MAX_PARTICIPANTS - 1));
});
