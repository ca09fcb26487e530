import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { verifyWebhook } from "../../sdk/src/webhooks.ts";
import { sealUrl } from "../../src/core/crypto/tracking-token.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { recipientToken } from "../../src/flows/mime/recipient-token.ts";
import { unsubscribeUrl } from "../../src/flows/mime/unsubscribe.ts";
import { readFact } from "../../src/store/installation/facts.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { hurried } from "../support/hurried-clock.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { certificateSecrets, sealedBy } from "../support/sealed.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { postrider } from "./command-program.ts";

/** Milliseconds. */
setDefaultTimeout(60_000);
/** How much faster the clock of the service runs, whose heartbeats are 15 seconds apart. */
const HURRY = 60;
const FROM = "hello@sender.test";
const TARGET = "https://shop.example/a";

let service: TestService;
let sink: HttpsSink;
let secret = "";
beforeAll(async () => {
  sink = startSink();
  service = await startService({ RATE_UNLIMITED: "1" }, hurried(HURRY));
  await verifiedDomain(service, "sender.test");
  const made = await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["*"] });
  const rotated = await service.call("POST", `/v1/webhooks/${made.body.id}/rotate-secret`);
  secret = rotated.body.signingSecret;
  const relay = { name: "relay", kind: "relay", relayUrl: "smtp://me:hush@relay.example:587" };
  const events = { provider: "postmark" };
  await service.call("POST", "/v1/routes", { ...relay, events }, { key: service.accountKey });
  await service.call("POST", "/v1/webhooks", ONCE, once);
  await service.app.db.write(certificateSecrets(masterKey()));
  // An erasure keeps its address as long as a message to it waits.
  const email = `delivered+erased@simulator.${SERVICE_DOMAIN}`;
  const scheduledAt = new Date(Date.now() + 7 * DAY_MS).toISOString();
  await service.send({ from: `a@onboarding.${SERVICE_DOMAIN}`, to: email, scheduledAt });
  await service.call("POST", "/v1/erasures", { email });
});
afterAll(async () => {
  await service.stop();
  await sink.stop();
});

const ONCE = { url: "https://hook.example/", eventTypes: ["*"] };
const once = { headers: { "idempotency-key": "one" } };
const masterKey = () => readFileSync(join(service.folder, "master.key"), "utf8").trim();
const rotate = () => postrider(["master-key", "rotate", "--json"], service.sameDatabase);
const forget = (...flags: string[]) => postrider(["master-key", "forget", ...flags], service.sameDatabase);

/** Takes the old key away, as an operator does. Returns it. */
function takeOldKey(): string {
  const path = join(service.folder, "master.key.old");
  const key = readFileSync(path, "utf8").trim();
  renameSync(path, `${path}.${Math.random()}`);
  return key;
}

/** Returns the paths of a message's unsubscribe link and of a tracked link, made with the present key. */
function linksOf(id: string): { unsubscribe: string; click: string } {
  const { unsubscribe: unsubscribeKey, tracking } = openKeys(null, service.folder);
  const token = recipientToken(tracking, { messageId: id, ord: 0 });
  return {
    unsubscribe: unsubscribeUrl({ publicUrl: "", unsubscribeKey }, id, 0),
    click: `/c/${token}.${sealUrl(tracking, token, TARGET)}`,
  };
}

const statusOf = async (path: string) => (await fetch(service.url + path, { redirect: "manual" })).status;
/** Waits until the running service has noticed. */
async function answers(path: string, status: number): Promise<void> {
  while ((await statusOf(path)) !== status) await Bun.sleep(50);
}

test("a rotation seals every secret again while the service runs, and the old key opens none", async () => {
  const before = masterKey();
  const all = await sealedBy(service.app.db, before);
  // Only a rotation keeps keys.
  expect(Object.keys(all.opened).filter((table) => all.opened[table] === 0)).toEqual(["installation"]);
  const ran = await rotate();
  expect([ran.code, ran.stderr, ran.stdout]).toEqual([0, "", expect.stringContaining("master.key.old")]);
  const old = takeOldKey();
  expect(old).toBe(before);
  // A connection that is reading sees the state of the beginning.
  while ((await readFact(service.app.db, "master_key_rotation")) !== "") await Bun.sleep(20);
  const { opened, lost } = await sealedBy(service.app.db, masterKey());
  expect(lost).toBe(0);
  expect(opened).toEqual({ ...all.opened, installation: 1 });
  const resealed = Object.values(all.opened).reduce((sum, count) => sum + count, 0);
  expect(ran.json()).toMatchObject([{ resealed, lost: 0 }]);
  expect((await sealedBy(service.app.db, old)).opened).toEqual(
    Object.fromEntries(Object.keys(opened).map((table) => [table, 0])),
  );
  // A certificate whose next key is its present one still has the same.
  expect(await service.app.db.first("SELECT private_key = order_key AS same FROM certificates", [])).toEqual({
    same: 1,
  });
});

test("after a rotation the running service signs mail and webhooks, and repeats an answer that holds a secret", async () => {
  await rotate();
  takeOldKey();
  const id = await service.send({ from: FROM });
  await service.message(id, "delivered");
  const { body: raw } = await service.call("GET", `/v1/emails/${id}/raw`);
  expect(raw).toContain("d=sender.test");
  const repeated = await service.call("POST", "/v1/webhooks", ONCE, once);
  expect([repeated.status, repeated.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
  const signed = () => sink.requests.items.filter(({ body }) => body.includes(id));
  while (signed().length === 0) await Bun.sleep(20);
  // The clock of the service hurries.
  for (const { body, headers } of signed())
    await verifyWebhook(body, headers.get("service-signature"), secret, { toleranceSeconds: 1e9 });
});

test("links of mail that was sent before a rotation work until the operator ends that, unsubscribe links last", async () => {
  const id = await service.send({ from: FROM, html: `<a href="${TARGET}">shop</a>`, unsubscribeLink: true });
  await service.message(id, "delivered");
  const { unsubscribe, click } = linksOf(id);
  await rotate();
  takeOldKey();
  await answers(linksOf(id).click, 302);
  expect([await statusOf(unsubscribe), await statusOf(click)]).toEqual([200, 302]);
  const shown = await forget("--json");
  expect(shown.json()).toMatchObject([{ ended: false }]);
  expect(await statusOf(click)).toBe(302);
  await forget("--yes");
  await answers(click, 404);
  expect(await statusOf(unsubscribe)).toBe(200);
  await forget("--yes", "--all");
  await answers(unsubscribe, 404);
  expect(await statusOf(linksOf(id).unsubscribe)).toBe(200);
});

test("a rotation refuses to begin while the key before the last one is still next to the new one", async () => {
  await rotate();
  const key = masterKey();
  const again = await rotate();
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("move it")]);
  expect(masterKey()).toBe(key);
  takeOldKey();
  expect(existsSync(join(service.folder, "master.key.next"))).toBe(false);
});
