/** Fills a database with the messages of `listed-messages.ts`, as lists read them. */
import { newId } from "../../src/core/ids.ts";
import type { Db } from "../../src/store/engine/client.ts";
import type { Message } from "../../src/store/messages/messages.ts";
import { indexWaiting, mergeSegments } from "../../src/store/search/message-index.ts";
import { insertListed } from "../../test/support/lists.ts";
import { listedMessage, PROJECTS } from "./listed-messages.ts";
import { processorTime } from "./processor-time.ts";
import { projectRow } from "./projects.ts";

/** Messages of each of the two other projects per message of the measured project. */
const OTHERS = 0.02;
/** Messages that are stored, and then indexed, together: as many as the service indexes in one write. */
const PER_WRITE = 250;
const PAGES_PER_MERGE = 1000;
/** Time between two messages. */
export const STEP_MS = 500;
export const BEGIN = Date.parse("2026-01-01T00:00:00Z");

/** Makes the projects under the account, and `count` messages of the first one. Shows the processor time of its steps. */
export async function fillLists(db: Db, accountId: string, count: number): Promise<void> {
  await db.write(PROJECTS.map((id) => projectRow(accountId, id)));
  const spent = { store: 0, index: 0, merge: 0 };
  const timed = async (part: keyof typeof spent, work: () => Promise<unknown>): Promise<void> => {
    spent[part] += await processorTime(work);
  };
  let batch: Message[] = [];
  for (let at = 0; at < count; at++) {
    const time = BEGIN + at * STEP_MS;
    batch.push(listedMessage(PROJECTS[0], newId("msg", time), time, at, count));
    if (at % (1 / OTHERS) === 0)
      for (const other of PROJECTS.slice(1))
        batch.push(listedMessage(other, newId("msg", time), time, at, count));
    if (batch.length < PER_WRITE && at < count - 1) continue;
    await timed("store", () => db.write(batch.map(insertListed)));
    await timed("index", () => indexWaiting(db, batch.length));
    batch = [];
  }
  // Work that the service does in quiet moments.
  await timed("merge", async () => {
    while (await mergeSegments(db, PAGES_PER_MERGE));
  });
  const each = Object.entries(spent).map(([part, time]) => `${part} ${(time / count).toFixed(0)} µs`);
  console.log(`${count} messages, processor time of each: ${each.join(", ")}`);
}
