import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { yieldToEventLoop } from "../../src/core/concurrency/event-loop.ts";
import { prepareContent } from "../../src/store/messages/prepare-content.ts";
import { attachmentBytes, messageBytes } from "../../src/flows/read/bytes.ts";
import { LARGE_OCTETS, LARGE_READS } from "../../src/store/contents/large-reads.ts";
import type { Inspect } from "../../src/flows/mime/reading-tasks.ts";
import type { Renderer } from "../../src/flows/mime/rendering-tasks.ts";
import type { NewAttachment } from "../../src/store/messages/attachments.ts";
import { insertMessage } from "../../src/store/messages/messages.ts";
import { type Lists, message, openLists } from "../support/lists.ts";
import { renderMemory } from "../../src/flows/mime/making.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

const PROJECTS = LARGE_READS.total + 1;
/** Event loop turns in which another message could begin if it were allowed. */
const TURNS = 50;

/**
 * Stores a message of that many bytes in each of several projects: an inbound one, or one that is composed on
 * request.
 */
async function mails(direction: "inbound" | "outbound", octets: number) {
  const keep = { db: lists.db, clock: systemClock };
  const stored: { senderId: string; id: string; part: string }[] = [];
  for (let project = 0; project < PROJECTS; project++) {
    const senderId = await lists.project();
    const content = await prepareContent(keep, senderId, new Uint8Array(octets).fill(project));
    const given = message(senderId, { direction, size: octets });
    const part = `att_${given.id}`;
    const attachment: NewAttachment = {
      id: part,
      filename: "a",
      contentType: "a/b",
      disposition: "attachment",
      contentId: null,
      size: 1,
      content: direction === "inbound" ? null : content,
    };
    const raw = direction === "inbound" ? content : null;
    await lists.db.write(insertMessage(given, { body: null, raw }, [attachment]));
    stored.push({ senderId, id: given.id, part });
  }
  return stored;
}

/** Maximum number of messages in memory at a time, of one project and of all. */
interface Most {
  project: number;
  all: number;
}

/** Requests each message twice at once. Holds those that begin until that many have begun, and a while longer. */
async function inHandTogether(
  direction: "inbound" | "outbound",
  octets: number,
  expected: number,
): Promise<Most> {
  const stored = await mails(direction, octets);
  const inHand = new Map<string, number>();
  const most: Most = { project: 0, all: 0 };
  const enough = Promise.withResolvers<void>();
  const hold = async (project: string): Promise<void> => {
    inHand.set(project, (inHand.get(project) ?? 0) + 1);
    most.project = Math.max(most.project, ...inHand.values());
    most.all = Math.max(
      most.all,
      [...inHand.values()].reduce((sum, count) => sum + count, 0),
    );
    if (most.all >= expected) enough.resolve();
    await enough.promise;
    for (let turns = 0; turns < TURNS; turns++) await yieldToEventLoop();
    inHand.set(project, (inHand.get(project) ?? 0) - 1);
  };
  const inspect = (async ({ raw }: { raw: Uint8Array }) => {
    await hold(String(raw[0]));
    return { bytes: Buffer.from("part") };
  }) as unknown as Inspect;
  const mail: Renderer["mail"] = async (senderId) => {
    await hold(senderId);
    return { raw: Buffer.from("mail"), smtpUtf8: false };
  };
  const deps = {
    db: lists.db,
    clock: systemClock,
    inspect,
    memory: renderMemory(),
    boxKey: new Uint8Array(32),
    publicUrl: "http://x.test",
    serviceDomain: "x.test",
    hostsDomains: false,
    trackingKey: new Uint8Array(32),
    verpKey: new Uint8Array(32),
    serviceSignature: false,
    unsubscribeKey: new Uint8Array(32),
    renderer: { mail } as Renderer,
  };
  const asked = [...stored, ...stored].map(({ senderId, id, part }) =>
    direction === "inbound" ? attachmentBytes(deps, senderId, id, part) : messageBytes(deps, senderId, id),
  );
  expect((await Promise.all(asked)).every((found) => found !== null)).toBe(true);
  return most;
}

test.each(["inbound", "outbound"] as const)(
  "of large %s messages one for each project and a few in all are in memory at a time, of small ones all",
  async (direction) => {
    const large = await inHandTogether(direction, LARGE_OCTETS + 1, LARGE_READS.total);
    expect(large).toEqual({ project: 1, all: LARGE_READS.total });
    const small = await inHandTogether(direction, LARGE_OCTETS, 2 * PROJECTS);
    expect(small).toEqual({ project: 2, all: 2 * PROJECTS });
  },
);
