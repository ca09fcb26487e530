import { afterAll, beforeAll, expect, test } from "bun:test";
import { Admission } from "../../src/core/concurrency/admission.ts";
import { systemClock } from "../../src/clock.ts";
import { AppError } from "../../src/core/errors.ts";
import { prepareContent } from "../../src/store/messages/prepare-content.ts";
import { LARGE_READS } from "../../src/store/contents/large-reads.ts";
import { readRecord } from "../../src/flows/read/record.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { insertMessage } from "../../src/store/messages/messages.ts";
import { around } from "../support/around.ts";
import { type Lists, message, openLists } from "../support/lists.ts";

let lists: Lists;
beforeAll(async () => {
  lists = await openLists();
});
afterAll(() => lists.remove());

test("a large body reserves memory by its size, and is not read if there is none", async () => {
  const senderId = await lists.project();
  const text = "x".repeat(3 * 1024 * 1024);
  const bytes = bodyBytes({ html: null, text });
  const given = message(senderId);
  const body = await prepareContent({ db: lists.db, clock: systemClock }, senderId, bytes);
  await lists.db.write(insertMessage(given, { body }, []));
  let chunks = 0;
  const db: Db = {
    ...around(lists.db),
    all(sql, args) {
      if (sql.includes("FROM content_chunks")) chunks++;
      return lists.db.all(sql, args);
    },
  };
  const deps = { db, memory: { largeReads: new Admission(LARGE_READS) } };
  const asked: number[] = [];
  const refuse = (octets: number) => {
    asked.push(octets);
    throw new AppError("service_unavailable", "full");
  };
  const refusal = await readRecord(deps, senderId, given.id, { expect: refuse }).then(() => null, String);
  expect([refusal, asked, chunks]).toEqual([expect.stringContaining("full"), [bytes.length], 0]);
  const record = await readRecord(deps, senderId, given.id, { expect: (octets) => void asked.push(octets) });
  expect(record?.content.text).toBe(text);
  expect([asked, chunks]).toEqual([[bytes.length, bytes.length], expect.any(Number)]);
  expect(chunks).toBeGreaterThan(0);
});
