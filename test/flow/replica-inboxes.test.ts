import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { newId } from "../../src/core/ids.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { insertInbox, listInboxes } from "../../src/store/inboxes.ts";
import { newFolder } from "../support/folder.ts";
import { startPrimary } from "../support/hrana-server.ts";
import { deliverTo } from "../support/mail-in.ts";
import { receivingInboxes, startService } from "../support/service.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

test("mail to an inbox that another process has just made is taken where a replica has not heard of it yet", async () => {
  const primary = await startPrimary();
  const replica = join(newFolder("replica"), "replica.db");
  const service = await startService({ DATABASE_URL: `file:${replica}`, DATABASE_SYNC_URL: primary.url });
  const other = await openDb(systemClock, { url: primary.url, authToken: null, syncUrl: null });
  stops.push(
    () => primary.stop(),
    () => service.stop(),
    () => other.close(),
  );
  await receivingInboxes(service, "in.test", ["first@in.test"]);
  const senders = await other.all<{ id: string }>("SELECT id FROM senders");
  const [inbox] = await listInboxes(other, senders[0]?.id ?? "", null);
  if (inbox === undefined) throw new Error("no inbox");
  // More than one: by chance the replica may just have heard.
  for (const box of ["a", "b", "c"]) {
    const address = `${box}@in.test`;
    await other.write([insertInbox({ ...inbox, id: newId("inb", systemClock.now()), address })]);
    expect(await deliverTo(service.smtpPort, { to: address })).toStartWith("250 ");
  }
  expect(await deliverTo(service.smtpPort, { to: "nobody@in.test" })).toStartWith("550 5.1.1 ");
});
