/** Plain inserts of contacts into the service's table, with its triggers, 250 in each commit: the floor of an import. */
import { systemClock } from "../../src/clock.ts";
import { newId } from "../../src/core/ids.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { insertContact, NOT_ENGAGED } from "../../src/store/projects/contacts.ts";
import { importedContact } from "./imported-contacts.ts";

const PER_WRITE = 250;
const [file, count] = process.argv.slice(2);
const db = await openDb(systemClock, { url: `file:${file}`, authToken: null, syncUrl: null });
const project = await db.first<{ id: string }>("SELECT id FROM senders LIMIT 1");
if (project === null) throw new Error("the database has no project");
console.log("ready");
const now = Date.now();
for (let at = 0; at < Number(count); at += PER_WRITE) {
  const many = Math.min(PER_WRITE, Number(count) - at);
  await db.write(
    Array.from({ length: many }, (_, nth) => {
      const { unsubscribed, ...names } = importedContact(at + nth);
      return insertContact({
        ...names,
        ...NOT_ENGAGED,
        id: newId("con", now),
        senderId: project.id,
        emailKey: names.email.toLowerCase(),
        subscribed: !unsubscribed,
        unsubscribedAt: unsubscribed ? now : null,
        metadata: {},
        properties: {},
        topics: {},
        consent: [],
        createdAt: now,
        updatedAt: now,
      });
    }),
  );
}
console.log(`stored ${process.cpuUsage().user + process.cpuUsage().system}`);
await db.close();
