import { afterAll, beforeAll, describe, expect } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { listMessages } from "../../src/store/lists/message-list.ts";
import type { Message } from "../../src/store/messages/messages.ts";
import { getThread, stepThread } from "../../src/store/threads/threads.ts";
import { test } from "../support/engine-test.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { type Lists, message, NOW, openLists } from "../support/lists.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

/** Two addresses, and whether they are the same. */
const PAIRS: readonly [name: string, stored: string, given: string, same: boolean][] = [
  ["in another case", "Ada@x.test", "aDA@x.test", true],
  ["beyond ASCII", "Ärger@x.test", "Ärger@x.test", true],
  ["beyond ASCII in another case", "Ärger@x.test", "ärGER@x.test", true],
  ["beyond ASCII in another case, the other way round", "ärger@x.test", "ÄRGER@x.test", true],
  ["in letters of another script", "Пётр@x.test", "пЁТР@x.test", true],
  ["with accents apart", "a\u0308rger@x.test", "Ärger@x.test", true],
  ["with accents apart, the other way round", "Ärger@x.test", "a\u0308RGER@x.test", true],
  ["beyond the basic plane", "\u{10400}@x.test", "\u{10428}@x.test", true],
  ["with a dot that is kept", "İ@x.test", "i\u0307@x.test", true],
  ["with a K that is the Kelvin sign", "k@x.test", "\u212a@x.test", true],
  ["with characters of patterns", "ä*?^@x.test", "Ä*?^@x.test", true],
  ["with a character that is a wildcard in a pattern", "äbc@x.test", "ä*@x.test", false],
  ["with a question mark, a wildcard in a pattern", "äb@x.test", "ä?@x.test", false],
  ["with another letter", "Ärger@x.test", "ärgen@x.test", false],
  ["with its letters written out", "weiß@x.test", "WEISS@x.test", false],
  ["without its accent", "Ärger@x.test", "arger@x.test", false],
  ["with more before it", "xÄ@x.test", "ä@x.test", false],
];

describe("a search by address", () => {
  for (const [name, stored, given, same] of PAIRS)
    test(`${name}: ${same}, before it is indexed and after`, async () => {
      const senderId = await lists.project();
      const there = { email: stored };
      const kinds: Partial<Message>[] = [{ from: there }, { to: [there] }, { cc: [there] }, { bcc: [there] }];
      await lists.store(kinds.map((kind) => message(senderId, kind)));
      const found = async () => {
        const pages = [{ from: given }, { to: given }].map((filter) =>
          listMessages(lists.db, senderId, filter, null, 10),
        );
        return (await Promise.all(pages)).map(({ messages }) => messages.length);
      };
      const waiting = await found();
      await lists.index();
      expect([waiting, await found()]).toEqual(
        same
          ? [
              [1, 3],
              [1, 3],
            ]
          : [
              [0, 0],
              [0, 0],
            ],
      );
    });
});

/** An inbox with a future thread: the statement that updates it, and its current participants. */
async function newThread() {
  const { senderId, inboxId } = await lists.inbox();
  const threadId = newId("thr", NOW);
  return {
    step: (...participants: string[]) =>
      stepThread({
        threadId,
        inboxId,
        senderId,
        messageId: "msg_1",
        subject: "",
        preview: "",
        participants,
        hasAttachments: false,
        inbound: true,
        at: NOW,
      }),
    shown: async () => (await getThread(lists.db, senderId, threadId))?.participants,
  };
}

describe("a participant of a thread is listed once", () => {
  for (const [name, stored, given, same] of PAIRS)
    test(`${name}: ${same}`, async () => {
      const { step, shown } = await newThread();
      await lists.db.write([step("Zoë@z.test", stored)]);
      await lists.db.write([step(given, "zoË@z.test", "new@z.test")]);
      const first = ["Zoë@z.test", stored];
      expect(await shown()).toEqual([...first, ...(same ? [] : [given]), "new@z.test"]);
      await lists.db.write([step(stored, given)]);
      expect(await shown()).toEqual([...first, ...(same ? [] : [given]), "new@z.test"]);
    });

  test("invalid addresses are compared as they are written", async () => {
    const { step, shown } = await newThread();
    await lists.db.write([step("ä b@x.test", "ann@x.test")]);
    await lists.db.write([step("ä b@x.test", "ä B@x.test", "ANN@x.test", "ö@x.test")]);
    expect(await shown()).toEqual(["ä b@x.test", "ann@x.test", "ö@x.test"]);
  });
});

describe("fifty participants beyond ASCII, new ones in each message of a thread, do not slow it down", () => {
  const MAILS = 20;
  const rows: readonly [name: string, local: string, domain: string][] = [
    ["with invalid addresses", "é".repeat(200) + "aB".repeat(45), "x.example"],
    ["with long names", "é".repeat(28), `${"abcdef.".repeat(26)}example`],
  ];
  for (const [name, local, domain] of rows)
    test(name, async () => {
      const { step } = await newThread();
      const from = cpuMs();
      for (let mail = 0; mail < MAILS; mail++) {
        const participants = Array.from({ length: 50 }, (_, at) => `${local}${mail}.${at}@${domain}`);
        await lists.db.write([step(...participants)]);
      }
      // If each spelling of each were compared with all others, it would take three thousand, and one and a half.
      expect(cpuMs() - from).toBeLessThan(1000);
    });
});
