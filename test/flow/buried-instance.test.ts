import { afterEach, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { BEAT_MS, Heartbeat, LEASE_MS, registerInstance, thisHost } from "../../src/flows/sweep/instance.ts";
import { type Instance, insertInstance } from "../../src/store/installation/instances.ts";
import { claimRecipient } from "../../src/store/messages/outbox.ts";
import { findRecipient, insertRecipients, waitingRecipient } from "../../src/store/messages/recipients.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

/** Number of heartbeat intervals after which a silent process is surely declared dead. */
const BEATS = LEASE_MS / BEAT_MS + 2;

let database: TestDatabase;
let clock: ManualClock;
let messageId: string;

beforeEach(async () => {
  database = await testDatabase();
  clock = manualClock();
  const now = clock.now();
  messageId = newId("msg", now);
  const sender = testSender("acc_1", "shop", now);
  const recipient = { ord: 0, email: "a@one.test", domain: "one.test", kind: "to" } as const;
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      args: [],
    },
    insertProject(sender),
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'queued', 'a@shop.test', '[]', 's', ?)`,
      args: [messageId, sender.id, now],
    },
    insertRecipients(
      sender.id,
      messageId,
      [{ ...recipient, status: "queued", reason: null, dueAt: now }],
      now,
    ),
  ]);
});
afterEach(() => database.remove());

async function beats(heartbeat: Heartbeat): Promise<void> {
  for (let beat = 0; beat < BEATS; beat++) {
    clock.advance(BEAT_MS);
    await heartbeat.turn();
  }
}

test("claims that a process makes after it was declared dead are freed when it dies", async () => {
  const { db } = database;
  const deps = { db, clock };
  const stalled: Instance = {
    id: newId("ins", clock.now()),
    host: thisHost(),
    pid: 1,
    heartbeatAt: clock.now(),
    masterKeys: "",
  };
  const lives: Instance = { ...stalled, id: newId("ins", clock.now()), host: "other" };
  await db.write([insertInstance(stalled), insertInstance(lives)]);
  const heartbeat = new Heartbeat(deps, lives);
  // The stalled process is silent for the lease and declared dead.
  await beats(heartbeat);
  // It wakes, claims mail before its next heartbeat, and dies.
  const waiting = await waitingRecipient(db, messageId, 0, clock.now());
  if (waiting === null) throw new Error("nobody waits");
  await db.write([claimRecipient(waiting.recipient, stalled.id, clock.now())]);
  // The other processes continue, and it is restarted on its host.
  await registerInstance(deps, process.pid);
  await beats(heartbeat);
  clock.advance(30 * 86_400_000);
  await beats(heartbeat);
  expect(await findRecipient(db, messageId, 0)).toMatchObject({ status: "queued" });
  expect(await waitingRecipient(db, messageId, 0, clock.now())).not.toBeNull();
});
