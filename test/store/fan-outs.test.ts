import { afterEach, beforeEach, expect, test } from "bun:test";
import type { EventType } from "../../src/core/messages/events.ts";
import { newId } from "../../src/core/ids.ts";
import {
  announce,
  announceEvents,
  eventsOf,
  type EventDraft,
  MAX_DELIVERIES_IN_WRITE,
} from "../../src/flows/webhooks/announce.ts";
import {
  DELIVERIES_PER_WRITE,
  makeDeliveries,
  PROJECTS_PER_TURN,
  WRITES_PER_PROJECT,
} from "../../src/flows/webhooks/fan-out.ts";
import { forgetMessages } from "../../src/flows/sweep/retention.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import type { Job } from "../../src/queue/port.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { deleteWebhook, insertWebhook, updateWebhook } from "../../src/store/webhooks/webhooks.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const NOW = 1_750_000_000_000;
const DAY_MS = 86_400_000;
const senders = ["one", "two"].map((name) => testSender("acc_1", name, NOW));
const [mine, theirs] = senders.map(({ id }) => id) as [string, string];

let clock: ManualClock;
let database: TestDatabase;
let db: Db;
beforeEach(async () => {
  clock = manualClock(NOW);
  database = await testDatabase();
  db = database.db;
  const account = {
    sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@a.test', 0)",
    args: [],
  };
  await db.write([account, ...senders.map(insertProject)]);
});
afterEach(() => database.remove());

/** Makes webhooks of the project and returns their ids. */
async function webhooks(senderId: string, count: number, eventTypes = ["*"]): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId("whk", NOW));
  const made = {
    senderId,
    url: "https://hook.test",
    enabled: true,
    dialect: "postrider" as const,
    eventTypes,
    content: true,
    disabledReason: null,
    failingSince: null,
  };
  await db.write(ids.map((id) => insertWebhook({ ...made, id, createdAt: NOW, updatedAt: NOW }, "sealed")));
  return ids;
}

/** Stores messages of the project with an event of each type. Returns the messages' ids. */
async function happen(senderId: string, messages: number, ...types: EventType[]): Promise<string[]> {
  const ids = Array.from({ length: messages }, () => newId("msg", NOW));
  const happenings = ids.flatMap((messageId) =>
    types.map((type): EventDraft => ({ messageId, type, email: "a@b.test" })),
  );
  const announced = await announce({ db, clock }, senderId, happenings);
  await db.write([...ids.map((id) => message(id, senderId)), ...announced.statements]);
  return ids;
}

const message = (id: string, senderId: string) => ({
  sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
    VALUES (?, ?, 'inbound', 'delivered', 'a@b.test', '[]', '', ?)`,
  args: [id, senderId, NOW],
});

/** The chore of one process, and the pushes that it has hinted. */
function worker(own: Db = db): { turn(): Promise<void>; hinted: string[] } {
  const hinted: string[] = [];
  const queue = openMemoryQueue({ clock, log: { error() {}, info() {} } } as never);
  const add = async (_: string, jobs: readonly Job[]) => void hinted.push(...jobs.map(({ key }) => key));
  return { turn: makeDeliveries({ db: own, clock, queue: { ...queue, add } }), hinted };
}

async function workedOff({ turn }: { turn(): Promise<void> }): Promise<void> {
  while ((await left()) > 0) {
    await turn();
    // Another process may have done it.
    await database.caughtUp();
  }
}

const counted = async (sql: string) => (await db.first<{ n: number }>(`SELECT count(*) AS n ${sql}`))?.n ?? 0;
const left = () => counted("FROM fan_outs");
const deliveries = () => counted("FROM webhook_deliveries");
/** Pairs of event and webhook without exactly one delivery. */
const amiss = () =>
  counted(`FROM (SELECT 1 FROM events e JOIN webhooks w ON w.sender_id = e.sender_id
    LEFT JOIN webhook_deliveries d ON d.event_id = e.id AND d.webhook_id = w.id AND d.message_id = e.message_id AND d.status = 'pending'
      AND d.type = e.type AND d.sender_id = e.sender_id GROUP BY e.id, w.id HAVING count(d.id) <> 1)`);

test("a write stores up to a limit of deliveries itself, and leaves more to the chore", async () => {
  const perMessage = 2;
  await webhooks(mine, 10);
  const few = MAX_DELIVERIES_IN_WRITE / 10 / perMessage;
  await happen(mine, few, "accepted", "queued");
  expect([await deliveries(), await left(), await amiss()]).toEqual([MAX_DELIVERIES_IN_WRITE, 0, 0]);
  await happen(mine, few + 1, "accepted", "queued");
  expect([await deliveries(), await left()]).toEqual([MAX_DELIVERIES_IN_WRITE, 1]);
  const { turn, hinted } = worker();
  await workedOff({ turn });
  expect([await deliveries(), await amiss()]).toEqual([2 * MAX_DELIVERIES_IN_WRITE + 10 * perMessage, 0]);
  expect(new Set(hinted).size).toBe(MAX_DELIVERIES_IN_WRITE + 10 * perMessage);
});

test("a webhook gets the events that it wants, in order, and no others", async () => {
  const [all] = await webhooks(mine, 1);
  const [queued] = await webhooks(mine, 1, ["queued"]);
  await webhooks(mine, 1, ["click"]);
  await happen(mine, MAX_DELIVERIES_IN_WRITE, "accepted", "queued");
  await workedOff(worker());
  const told = (webhookId: string | undefined) =>
    db.all("SELECT event_id AS id, type FROM webhook_deliveries WHERE webhook_id = ? ORDER BY id", [
      webhookId ?? "",
    ]);
  const happened = await db.all<{ id: string; type: string }>("SELECT id, type FROM events ORDER BY id");
  expect(await told(all)).toEqual(happened);
  expect(await told(queued)).toEqual(happened.filter(({ type }) => type === "queued"));
  expect(await deliveries()).toBe(3 * MAX_DELIVERIES_IN_WRITE);
});

test("an event that more webhooks want is left to the chore, and so is a message to inboxes of several projects", async () => {
  await webhooks(mine, 300);
  await webhooks(theirs, 201);
  const [here, there] = [newId("msg", NOW), newId("msg", NOW)];
  const type = "inbound_received" as const;
  const events = [
    ...eventsOf(clock, mine, [{ messageId: here, type, email: null }]),
    ...eventsOf(clock, theirs, [{ messageId: there, type, email: null }]),
  ];
  const read = async (senderId: string) =>
    (await db.all<{ id: string }>("SELECT id FROM webhooks WHERE sender_id = ?", [senderId])).map(
      ({ id }) => ({
        webhookId: id,
        eventTypes: ["*"],
      }),
    );
  const known = new Map([
    [mine, await read(mine)],
    [theirs, await read(theirs)],
  ]);
  const { statements, pushes } = announceEvents(clock, events, known);
  await db.write([message(here, mine), message(there, theirs), ...statements]);
  expect([pushes, await deliveries(), await left()]).toEqual([[], 0, 2]);
  await workedOff(worker());
  expect([await deliveries(), await amiss()]).toEqual([501, 0]);
});

test("if the guard of a write fails, the chore gets nothing", async () => {
  await webhooks(mine, MAX_DELIVERIES_IN_WRITE + 1);
  const [messageId] = await happen(mine, 1);
  const happening: EventDraft = { messageId: messageId ?? "", type: "open", email: null };
  const guard = (project: string) => ({
    sql: "EXISTS (SELECT 1 FROM senders WHERE id = ?)",
    args: [project],
  });
  for (const project of ["snd_none", mine]) {
    await db.write((await announce({ db, clock }, mine, [happening], guard(project))).statements);
    expect([await counted("FROM events"), await left()]).toEqual(project === mine ? [1, 1] : [0, 0]);
  }
});

test("if several processes run the chore and one may end at any time, each delivery is made once", async () => {
  await webhooks(mine, 7);
  await happen(mine, 1100, "accepted");
  expect(await left()).toBe(3);
  const other = await database.another();
  const workers = [worker(), worker(other), worker()];
  await Promise.all(workers.map((one) => one.turn()));
  expect(await left()).toBeGreaterThan(0);
  await workedOff(worker(other));
  await other.close();
  await database.caughtUp();
  expect([await deliveries(), await amiss()]).toEqual([7700, 0]);
  const hinted = JSON.stringify(workers.flatMap((one) => one.hinted));
  const made = await counted(
    `FROM webhook_deliveries WHERE id IN (SELECT value FROM json_each('${hinted}'))`,
  );
  expect(made).toBe(JSON.parse(hinted).length);
});

test("deliveries go to the webhooks at the time of the event: not to later or deleted ones", async () => {
  const [deleted = "", disabled = ""] = await webhooks(mine, 6);
  await happen(mine, 100, "delivery");
  await deleteWebhook(db, mine, deleted, NOW);
  await updateWebhook(db, mine, disabled, { enabled: false }, true, NOW);
  const [late = ""] = await webhooks(mine, 1);
  await workedOff(worker());
  const of = (id: string) => counted(`FROM webhook_deliveries WHERE webhook_id = '${id}'`);
  expect([await of(deleted), await of(disabled), await of(late), await deliveries()]).toEqual([
    0, 100, 0, 500,
  ]);
});

test("projects take turns, so that one with millions of deliveries delays no other", async () => {
  const perTurn = DELIVERIES_PER_WRITE * WRITES_PER_PROJECT;
  await webhooks(mine, 10);
  await webhooks(theirs, 10);
  await happen(mine, 1000, "accepted");
  await happen(theirs, 51, "accepted");
  await worker().turn();
  const of = (id: string) => counted(`FROM webhook_deliveries WHERE sender_id = '${id}'`);
  expect([await of(mine), await of(theirs)]).toEqual([(PROJECTS_PER_TURN - 1) * perTurn, 510]);
});

test("a message with deliveries still to be made is not removed", async () => {
  await webhooks(mine, MAX_DELIVERIES_IN_WRITE + 1);
  const [earlier] = await happen(mine, 1);
  const [told] = await happen(mine, 1, "inbound_received");
  const [later] = await happen(mine, 1);
  clock.step(3 * DAY_MS);
  await forgetMessages({ db, clock, objects: null } as never, 1)();
  const kept = async () => (await db.all<{ id: string }>("SELECT id FROM messages")).map(({ id }) => id);
  expect([earlier !== told && later !== told, await kept()]).toEqual([true, [told ?? ""]]);
});
