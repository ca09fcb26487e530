import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { systemClock } from "../../src/clock.ts";
import { newId } from "../../src/core/ids.ts";
import { recipientToken } from "../../src/flows/mime/recipient-token.ts";
import { verpAddress } from "../../src/mail/verp.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { insertInbox, listInboxes } from "../../src/store/threads/inboxes.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { startServer } from "../support/database.ts";
import { newFolder } from "../support/folder.ts";
import { deliverTo } from "../support/mail-in.ts";
import { reportMail } from "../support/report-mail.ts";
import { receivingInboxes, startService } from "../support/service.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

test("mail to an inbox that another process has just made is accepted even if a replica has not synced it", async () => {
  const primary = await startServer();
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
  // More than one, because the replica may have synced just then.
  for (const box of ["a", "b", "c"]) {
    const address = `${box}@in.test`;
    await other.write([insertInbox({ ...inbox, id: newId("inb", systemClock.now()), address })]);
    expect(await deliverTo(service.smtpPort, { to: address })).toStartWith("250 ");
  }
  expect(await deliverTo(service.smtpPort, { to: "nobody@in.test" })).toStartWith("550 5.1.1 ");
});

test("a bounce of a message that another process has just sent counts even if a replica has not synced it", async () => {
  const primary = await startServer();
  const replica = join(newFolder("replica"), "replica.db");
  const env = {
    DATABASE_URL: `file:${replica}`,
    DATABASE_SYNC_URL: primary.url,
    MASTER_KEY: "one-that-all-processes-have-in-common",
  };
  const service = await startService(env);
  const other = await openDb(systemClock, { url: primary.url, authToken: null, syncUrl: null });
  stops.push(
    () => primary.stop(),
    () => service.stop(),
    () => other.close(),
  );
  const { verp } = openKeys(env.MASTER_KEY, service.folder);
  const [sender] = await other.all<{ id: string }>("SELECT id FROM senders");
  const transport = createTransport({ host: "127.0.0.1", port: service.smtpPort, ignoreTLS: true });
  stops.push(() => transport.close());
  for (const to of ["a@x.test", "b@x.test", "c@x.test"]) {
    const id = newId("msg", systemClock.now());
    await other.write([
      {
        sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
          VALUES (?, ?, 'outbound', 'sent', 'a@shop.test', '[]', '', ?)`,
        args: [id, sender?.id ?? "", systemClock.now()],
      },
      {
        sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, attempts)
          VALUES (?, 0, ?, ?, 'x.test', 'to', 'sent', 1)`,
        args: [id, sender?.id ?? "", to],
      },
    ]);
    const raw = reportMail({
      parts: [
        {
          type: "message/delivery-status",
          lines: [
            "Reporting-MTA: dns; mx.x.test",
            "",
            `Final-Recipient: rfc822; ${to}`,
            "Action: failed",
            "Status: 5.1.1",
          ],
        },
      ],
    });
    const returnPath = verpAddress(recipientToken(verp, { messageId: id, ord: 0 }), "bounce.mail.test");
    await transport.sendMail({ envelope: { from: "", to: returnPath }, raw });
    const recipient = await other.first("SELECT status FROM recipients WHERE message_id = ?", [id]);
    expect(recipient).toEqual({ status: "bounced" });
  }
});
