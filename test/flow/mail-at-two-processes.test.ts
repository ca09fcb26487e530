import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type Inspect, runReading } from "../../src/flows/mime/reading-tasks.ts";
import { createInboundHandler } from "../../src/flows/receive/inbound-handler.ts";
import { simulateInbound } from "../../src/flows/receive/simulate.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { around } from "../support/around.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { limitsOf } from "../../src/flows/deliver/reputation.ts";

let service: TestService;
beforeEach(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
});
afterEach(() => service.stop());

const mailTo = (...rcptTo: string[]) => ({
  mailFrom: "ada@client.test",
  rcptTo,
  ip: "192.0.2.1",
  helo: "x",
  tls: null,
  smtpUtf8: false,
});
const MAIL = Buffer.from(
  "From: ada@client.test\r\nMessage-ID: <one@client.test>\r\nSubject: Hi\r\n\r\nHi\r\n",
);

/** The dependencies by which a process receives mail, with its own connection to the database. */
function depsOf(db: Db) {
  const { queue } = service.app;
  const asking = {
    clock: systemClock,
    host: "mx.test",
    resolve: () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" })),
  };
  return {
    db,
    queue,
    clock: systemClock,
    hostname: `mx.${SERVICE_DOMAIN}`,
    serviceDomain: SERVICE_DOMAIN,
    verpKey: new Uint8Array(32),
    unsubscribeKey: new Uint8Array(32),
    inspect: ((asked) => runReading(asking, asked)) satisfies Inspect,
    publicIps: [],
    dmarcReporters: [],
    suspension: limitsOf(5),
  };
}

const doorOf = (db: Db) => createInboundHandler(depsOf(db));

/** The database of a process that is about to write when another process has just run `first`. */
function slowDb(first: () => Promise<unknown>): Db {
  const { db } = service.app;
  let writes = 0;
  return {
    ...around(db),
    async write(statements) {
      if (writes++ === 0) await first();
      return db.write(statements);
    },
  };
}

const slowDoor = (first: () => Promise<unknown>) => doorOf(slowDb(first));

const stored = () =>
  service.app.db.all<{ address: string; messages: number; threads: number }>(
    `SELECT i.address, COUNT(m.id) AS messages, COUNT(DISTINCT m.thread_id) AS threads
      FROM inboxes i LEFT JOIN messages m ON m.inbox_id = i.id GROUP BY i.id ORDER BY i.address`,
  );

test("a message that is delivered to two processes at once is stored once", async () => {
  const other = doorOf(service.app.db);
  const slow = slowDoor(() => other.message(mailTo("a@in.test"), MAIL));
  expect(await slow.message(mailTo("a@in.test"), MAIL)).toMatchObject({ code: 250 });
  expect(await stored()).toEqual([
    { address: "a@in.test", messages: 1, threads: 1 },
    { address: "b@in.test", messages: 0, threads: 0 },
  ]);
});

test("an inbox that the other process did not store it for still gets it", async () => {
  const other = doorOf(service.app.db);
  const slow = slowDoor(() => other.message(mailTo("a@in.test"), MAIL));
  expect(await slow.message(mailTo("a@in.test", "b@in.test"), MAIL)).toMatchObject({ code: 250 });
  expect(await stored()).toEqual([
    { address: "a@in.test", messages: 1, threads: 1 },
    { address: "b@in.test", messages: 1, threads: 1 },
  ]);
});

const ANSWER = Buffer.from(
  "From: bob@client.test\r\nMessage-ID: <two@client.test>\r\nIn-Reply-To: <one@client.test>\r\nSubject: Re: Hi\r\n\r\nHo\r\n",
);
const OTHER_ANSWER = Buffer.from(
  "From: eve@client.test\r\nMessage-ID: <three@client.test>\r\nIn-Reply-To: <one@client.test>\r\nSubject: Re: Hi\r\n\r\nHa\r\n",
);

test.each([
  ["a message, and a reply that overtakes it", MAIL, ANSWER],
  ["a reply, and the message that is late", ANSWER, MAIL],
  ["two replies to a message that is not here", ANSWER, OTHER_ANSWER],
])(
  "if two processes each receive one message of a conversation, they begin one thread: %s",
  async (_, late, early) => {
    const other = doorOf(service.app.db);
    const slow = slowDoor(() => other.message(mailTo("a@in.test"), early));
    expect(await slow.message(mailTo("a@in.test", "b@in.test"), late)).toMatchObject({ code: 250 });
    expect(await stored()).toEqual([
      { address: "a@in.test", messages: 2, threads: 1 },
      { address: "b@in.test", messages: 1, threads: 1 },
    ]);
  },
);

test("a received message and a simulated one that come at the same time are both stored", async () => {
  const [inbox] = await service.app.db.all<{ id: string; sender_id: string }>(
    "SELECT id, sender_id FROM inboxes WHERE address = 'a@in.test'",
  );
  const first = () => doorOf(service.app.db).message(mailTo("a@in.test"), ANSWER);
  const mail = { inboxId: inbox?.id, attachments: [], text: "Ho", inReplyTo: "<one@client.test>" };
  const deps = { ...depsOf(slowDb(first)), limits: { maxMessageBytes: 10_000 } };
  await simulateInbound(deps, inbox?.sender_id ?? "", mail, () => []);
  expect(await stored()).toContainEqual({ address: "a@in.test", messages: 2, threads: 1 });
});
