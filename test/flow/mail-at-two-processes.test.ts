import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { read } from "../../src/flows/readings.ts";
import { openDoor } from "../../src/flows/receive/door.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { around } from "../support/around.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeEach(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
});
afterEach(() => service.stop());

const mailTo = (...rcptTo: string[]) => ({
  ...{ mailFrom: "ada@client.test", rcptTo, ip: "192.0.2.1", helo: "x", tls: null, smtpUtf8: false },
});
const MAIL = Buffer.from(
  "From: ada@client.test\r\nMessage-ID: <one@client.test>\r\nSubject: Hi\r\n\r\nHi\r\n",
);

/** The door of a process, over its own view of the database. */
function doorOf(db: Db) {
  const { queue } = service.app;
  const asking = {
    ...{ clock: systemClock, host: "mx.test" },
    resolve: () => Promise.reject(new Error("no name server")),
  };
  return openDoor({
    ...{ db, queue, clock: systemClock, hostname: `mx.${SERVICE_DOMAIN}`, serviceDomain: SERVICE_DOMAIN },
    ...{ verpKey: new Uint8Array(32), inspect: (asked) => read(asking, asked) },
  });
}

/** A door that is about to write when another process has just done `first`. */
function slowDoor(first: () => Promise<unknown>) {
  const { db } = service.app;
  let writes = 0;
  return doorOf({
    ...around(db),
    async write(statements) {
      if (writes++ === 0) await first();
      return db.write(statements);
    },
  });
}

const stored = () =>
  service.app.db.all<{ address: string; messages: number; threads: number }>(
    `SELECT i.address, COUNT(m.id) AS messages, COUNT(DISTINCT m.thread_id) AS threads
      FROM inboxes i LEFT JOIN messages m ON m.inbox_id = i.id GROUP BY i.id ORDER BY i.address`,
  );

test("a mail that is brought to two processes at once is taken once", async () => {
  const other = doorOf(service.app.db);
  const slow = slowDoor(() => other.message(mailTo("a@in.test"), MAIL));
  expect(await slow.message(mailTo("a@in.test"), MAIL)).toMatchObject({ code: 250 });
  expect(await stored()).toEqual([
    { address: "a@in.test", messages: 1, threads: 1 },
    { address: "b@in.test", messages: 0, threads: 0 },
  ]);
});

test("an inbox that another process has not taken it for gets it all the same", async () => {
  const other = doorOf(service.app.db);
  const slow = slowDoor(() => other.message(mailTo("a@in.test"), MAIL));
  expect(await slow.message(mailTo("a@in.test", "b@in.test"), MAIL)).toMatchObject({ code: 250 });
  expect(await stored()).toEqual([
    { address: "a@in.test", messages: 1, threads: 1 },
    { address: "b@in.test", messages: 1, threads: 1 },
  ]);
});
