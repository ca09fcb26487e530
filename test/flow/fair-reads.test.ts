import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

const CAMPAIGN = 100_000;
/** Time after the start of a worker within which a message leaves, milliseconds. A busy machine takes a while. */
const SOON_MS = 6_000;

let service: TestService;
let provider: TestMx;

afterEach(async () => {
  await service.stop();
  provider.stop();
});

/** Makes the recipient of a message a hundred thousand, all of which have been due for longer than any other. */
async function multiply(messageId: string): Promise<void> {
  await service.app.db.write([
    {
      sql: `WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?)
        INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, bulk, status, due_at)
        SELECT message_id, k.n, sender_id, 'p' || k.n || '@mail.test', domain, kind, bulk, status, due_at - 60000
        FROM recipients, k WHERE message_id = ? AND ord = 0`,
      args: [CAMPAIGN, messageId],
    },
  ]);
}

test("after a restart, a message of another project and a reset of the same one overtake 100,000 that are due", async () => {
  provider = startMx();
  const env = { DELIVERY: "mx", SMTP_OUT_PORT: String(provider.port), ROLES: "api", TIER_NEW: "unlimited" };
  service = await startService(env);
  const exchange = "mxs.mail.ru";
  service.dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
  service.dns.add({ name: "mail.test", type: "MX", data: { preference: 10, exchange } });
  await verifiedDomain(service, "a.test");
  const wide = { key: service.accountKey };
  const { body: sender } = await service.call("POST", "/v1/senders", { name: "B" }, wide);
  const { body } = await service.call("POST", "/v1/api-keys", { name: "B", senderId: sender.id }, wide);
  const other = { key: body.secret ?? body.key };
  await verifiedDomain(service, "b.test", other.key);
  const mail = (from: string, to: string) => ({
    from: { email: from },
    to: [{ email: to }],
    subject: "Hi",
    text: "Hi\n",
  });
  const campaign = await service.send({ ...mail("a@a.test", "p0@mail.test"), stream: "bulk" });
  await multiply(campaign);
  await service.call("POST", "/v1/emails", mail("a@a.test", "reset@mail.test"));
  await service.call("POST", "/v1/emails", mail("b@b.test", "single@mail.test"), other);
  await service.restart({ ...env, ROLES: "api,worker" });
  const startedAt = systemClock.now();
  const isWanted = (to: string) => to.startsWith("reset") || to.startsWith("single");
  const wanted = () => provider.messages.items.filter(({ rcptTo }) => rcptTo.some(isWanted)).length;
  while (wanted() < 2 && systemClock.now() < startedAt + SOON_MS) await Bun.sleep(20);
  expect(systemClock.now() - startedAt).toBeLessThan(SOON_MS);
});
