import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifyWebhook } from "../../sdk/src/webhooks.ts";
import { masterKeyOf } from "../../src/flows/secrets/master-key.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { systemClock } from "../../src/clock.ts";
import { publish } from "../support/dns.ts";
import { newFolder } from "../support/folder.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { until } from "../support/poll.ts";
import { type Relayed, startRelayed, type TestRelay } from "../support/relayed.ts";
import { certificateSecrets, sealedBy } from "../support/sealed.ts";
import { SERVICE_DOMAIN, type TestService, verifiedDomain } from "../support/service.ts";
import { postrider } from "./command-program.ts";

/** Milliseconds. */
setDefaultTimeout(60_000);

let relayed: Relayed;
let service: TestService;
let relay: TestRelay;
let sink: HttpsSink;
let hook = "";
let domain = "";
beforeAll(async () => {
  sink = startSink();
  relayed = await startRelayed({ DELIVERY_RETRY_SECONDS: "2,2,2,2,2,2,2,2" });
  service = relayed.service;
  relay = await relayed.relay("relay", { provider: "postmark" });
  domain = await verifiedDomain(service, "shop.test");
  const served = await verifiedDomain(service, "served.test");
  await service.app.db.write([
    { sql: "UPDATE domains SET delegated = 1, served = 1 WHERE id = ?", args: [served] },
  ]);
  hook = (await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["*"] })).body.id;
  await service.call("POST", `/v1/webhooks/${hook}/rotate-secret`);
  const once = { headers: { "idempotency-key": "one" } };
  await service.call("POST", "/v1/webhooks", { url: "https://hook.example/", eventTypes: ["*"] }, once);
  await service.app.db.write(certificateSecrets(masterKey()));
});
afterAll(async () => {
  await relayed.stop();
  await sink.stop();
});

const keyFile = () => join(service.folder, "master.key");
const masterKey = () => readFileSync(keyFile(), "utf8").trim();
const reset = (...flags: string[]) =>
  postrider(["master-key", "reset", ...flags, "--json"], { ...service.sameDatabase, SERVICE_DOMAIN });
const inDatabase = async <Value>(read: (db: TestService["app"]["db"]) => Promise<Value>): Promise<Value> => {
  const url = service.sameDatabase.DATABASE_URL ?? `file:${join(service.folder, "postrider.db")}`;
  const db = await openDb(systemClock, { url, authToken: null, syncUrl: null });
  try {
    return await read(db);
  } finally {
    await db.close();
  }
};

test("a master key that opens every secret is not reset, and neither is one while a process runs", async () => {
  const shown = await reset();
  expect([shown.code, shown.json()]).toEqual([0, [{ lost: 0, replaced: false }]]);
  const refused = await reset("--yes");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("nothing was changed")]);
  const own = masterKey();
  writeFileSync(keyFile(), `${"a".repeat(64)}\n`);
  const running = await reset("--yes");
  expect([running.code, running.stderr]).toEqual([
    1,
    expect.stringContaining("may have the lost key in memory"),
  ]);
  writeFileSync(keyFile(), `${own}\n`);
  expect((await sealedBy(service.app.db, own)).lost).toBe(0);
});

test("a start without the master key names the ways out, and a reset replaces what it sealed", async () => {
  const before = await sealedBy(service.app.db, masterKey());
  const all = Object.values(before.opened).reduce((sum, count) => sum + count, 0);
  await service.app.stop();
  const lost = masterKey();
  writeFileSync(keyFile(), `${"b".repeat(64)}\n`);
  const refused = await service.restart().catch(String);
  expect(refused).toMatch(/master-key rotate.*master-key reset/);
  const shown = (await reset()).json();
  expect(shown.at(-1)).toEqual({ lost: shown.length - 1, replaced: false });
  expect(await inDatabase((db) => sealedBy(db, lost))).toEqual(before);

  const ran = await reset("--yes");
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  const lines = ran.json() as {
    kind: string;
    id: string;
    name: string;
    todo: string;
    [more: string]: unknown;
  }[];
  const kinds = lines.slice(0, -1).map(({ kind, name }) => `${kind} ${name}`.trim());
  expect(kinds.toSorted()).toEqual(
    shown
      .slice(0, -1)
      .map(({ kind, name }) => `${kind} ${name}`.trim())
      .toSorted(),
  );
  const after = await inDatabase((db) => sealedBy(db, masterKey()));
  expect(after.lost).toBe(0);
  expect(all).toBeGreaterThan(10);
  expect((await inDatabase((db) => sealedBy(db, lost))).opened).toMatchObject({ dkim_keys: 0, webhooks: 0 });

  await service.restart();
  // Delegated domains need nothing, others publish one record.
  const of = (kind: string, name: string) => lines.find((line) => line.kind === kind && line.name === name);
  expect(of("DKIM key", "served.test")?.todo).toBe("Nothing: the domain is delegated");
  const records = of("DKIM key", "shop.test")?.records as { name: string; type: string; value: string }[];
  expect(records).toMatchObject([{ name: "pr2._domainkey.shop.test", type: "CNAME" }]);
  const state = async () => (await service.call("POST", `/v1/domains/${domain}/verify`)).body;
  expect(await state()).toMatchObject({ status: "verified", authHealth: { dkim: "failing" } });
  publish(service.dns, records as never);
  expect(await state()).toMatchObject({ status: "verified", authHealth: { dkim: "verified" } });

  // The webhook signs with the secret that was printed.
  const secret = String(lines.find(({ kind, id }) => kind === "webhook secret" && id === hook)?.secret);
  await service.call("POST", `/v1/webhooks/${hook}/test`);
  await until(() => sink.requests.items.length > 0);
  const push = sink.requests.items.at(-1);
  await verifyWebhook(push?.body ?? "", push?.headers.get("service-signature"), secret);

  // Mail for the relay waits for its login.
  const { data } = (await relayed.wide("GET", "/v1/senders")).body;
  await relayed.wide("PATCH", `/v1/senders/${data.at(-1).id}`, { routeIds: [relay.id] });
  const id = await service.send({ from: "news@shop.test", to: "b@to.test" });
  const message = await service.message(id, "delivery_delayed");
  expect(JSON.stringify(message)).toContain("the login of the relay is lost");
  const relayUrl = `smtp://127.0.0.1:${relay.peer.port}?insecure=1`;
  expect((await relayed.wide("PATCH", `/v1/routes/${relay.id}`, { relayUrl })).status).toBe(200);
  await service.message(id, "sent");
  expect(String(relay.peer.messages.items.at(-1)?.data)).toContain("s=pr2");
});

test("a reset without --yes makes no master key", async () => {
  const folder = newFolder("reset");
  const { DATABASE_URL = `file:${join(service.folder, "postrider.db")}` } = service.sameDatabase;
  const ran = await postrider(["master-key", "reset", "--json"], {
    ...service.sameDatabase,
    DATABASE_URL,
    DATA_DIR: folder,
  });
  expect(ran.code).toBe(0);
  expect(ran.json().length).toBeGreaterThan(1);
  expect(await Bun.file(join(folder, "master.key")).exists()).toBe(false);
  expect(masterKeyOf(masterKey()).id).toHaveLength(16);
});
