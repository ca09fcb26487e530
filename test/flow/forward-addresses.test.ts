import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import { FORWARD_LINK_MS } from "../../src/flows/rules/forward-addresses.ts";
import {
  MAX_FORWARD_ADDRESSES,
  MAX_LINKS_OF_PROJECT,
  MAX_LINKS_TO_ADDRESS,
} from "../../src/store/rules/forward-addresses.ts";
import { askedAddress, confirmedForward } from "../support/forwards.ts";
import { until } from "../support/poll.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(30_000);

let service: TestService;
let relay: TestMx;
let clock: ShiftedClock;

beforeAll(async () => {
  relay = startMx();
  clock = shiftedClock();
  service = await startService(
    { DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` },
    clock,
  );
});
afterAll(async () => {
  await service.stop();
  relay.stop();
});

let projects = 0;
/** A project for one test, and how to call the API with its key. */
async function newProject() {
  const name = `Acme. https://evil.test/${++projects}`;
  const { body } = await service.call("POST", "/v1/senders", { name }, { key: service.accountKey });
  const asked = { name: "k", senderId: body.id };
  const { secret: key } = (await service.call("POST", "/v1/api-keys", asked, { key: service.accountKey }))
    .body;
  const call = (method: string, path: string, sent?: unknown) => service.call(method, path, sent, { key });
  return { call, ask: (email: string) => call("POST", "/v1/forward-addresses", { email }) };
}
/** Opens a page without a key. */
async function page(method: string, link: string) {
  const { status, body } = await service.call(method, link, undefined, { key: "none" });
  return { status, body: String(body) };
}
const outside = { service: () => service, relay: () => relay };

test("an address is confirmed by a POST of its link, and opening the link changes nothing", async () => {
  const { call } = await newProject();
  const { address, link, text } = await askedAddress(outside, call, "ada@far.test");
  expect(address).toMatchObject({ email: "ada@far.test", status: "pending", confirmedAt: null });
  expect(text).toContain('The project "Acme https evil test 1"');
  const status = async () => (await call("GET", `/v1/forward-addresses/${address.id}`)).body.status;
  for (let scan = 0; scan < 2; scan++)
    expect((await page("GET", link)).body).toContain('<form method="post"><button>Confirm');
  expect(await status()).toBe("pending");
  for (let time = 0; time < 2; time++)
    expect(await page("POST", link)).toMatchObject({
      status: 200,
      body: expect.stringContaining("Confirmed"),
    });
  expect((await page("GET", link)).body).toContain("<h1>Confirmed");
  expect(await status()).toBe("confirmed");
  const { body } = await service.call("GET", `/v1/audit-log?target=${address.id}`, undefined, {
    key: service.accountKey,
  });
  expect(body.data.map(({ action }: { action: string }) => action)).toEqual([
    "forward_address.confirm",
    "forward_address.create",
  ]);
});

test("no key of the project can read the link", async () => {
  const { call } = await newProject();
  await askedAddress(outside, call, "secret@far.test");
  expect((await call("GET", "/v1/emails")).body.data).toEqual([]);
});

test("a forged link, one that is too old, and that of a removed address confirm nothing", async () => {
  const { call } = await newProject();
  const { address, link } = await askedAddress(outside, call, "late@far.test");
  for (const forged of [`${link}x`, `${link.slice(0, -2)}AA`, "/f/x", `/f/${"x".repeat(1001)}`])
    expect([forged, (await page("POST", forged)).status]).toEqual([forged, 404]);
  clock.shift(FORWARD_LINK_MS);
  expect((await page("POST", link)).status).toBe(404);
  const again = await askedAddress(outside, call, "late@far.test");
  expect(again.address.id).toBe(address.id);
  await call("DELETE", `/v1/forward-addresses/${address.id}`);
  expect((await page("POST", again.link)).status).toBe(404);
  expect((await call("GET", "/v1/forward-addresses")).body.data).toEqual([]);
  const last = await askedAddress(outside, call, "late@far.test");
  expect((await page("POST", again.link)).status).toBe(404);
  expect((await page("POST", last.link)).status).toBe(200);
  expect((await call("GET", "/v1/forward-addresses")).body.data).toMatchObject([
    { id: last.address.id, status: "confirmed" },
  ]);
});

test(`an address gets ${MAX_LINKS_TO_ADDRESS} links a day from all projects, whether or not they remove it`, async () => {
  const [one, other] = [await newProject(), await newProject()];
  for (let time = 0; time < MAX_LINKS_TO_ADDRESS; time++) {
    const { status, body } = await (time % 2 === 0 ? one : other).ask("victim@far.test");
    expect(status).toBe(201);
    if (time === 0) await one.call("DELETE", `/v1/forward-addresses/${body.id}`);
  }
  for (const project of [one, other]) {
    const { status, body, headers } = await project.ask("victim@far.test");
    expect([status, body.error.type]).toEqual([429, "rate_limited"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  }
  clock.shift(DAY_MS);
  expect((await one.ask("victim@far.test")).status).toBe(201);
});

test(`a project mails ${MAX_LINKS_OF_PROJECT} links a day`, async () => {
  const { ask } = await newProject();
  const asked = Array.from({ length: MAX_LINKS_OF_PROJECT }, (_, at) => ask(`many${at}@far.test`));
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 201));
  expect((await ask("more@far.test")).status).toBe(429);
});

test("a confirmed address is not asked again", async () => {
  const { call, ask } = await newProject();
  const before = await confirmedForward(outside, call, "sure@far.test");
  const mails = relay.messages.items.length;
  expect((await ask("Sure@far.test")).body).toMatchObject({ id: before.id, status: "confirmed" });
  expect(relay.messages.items.length).toBe(mails);
});

test("requests at the same time make one address", async () => {
  const { call, ask } = await newProject();
  const answers = await Promise.all([1, 2].map(() => ask("twice@far.test")));
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect((await call("GET", "/v1/forward-addresses")).body.data).toHaveLength(1);
});

test("no link goes to an address that is suppressed, or that complained of this service's mail", async () => {
  const { call, ask } = await newProject();
  await call("POST", "/v1/suppressions", { email: "no@far.test" });
  expect((await ask("no@far.test")).body.error).toMatchObject({ type: "validation_error", param: "email" });
  const hidden = "(SELECT sender_id FROM messages WHERE from_email LIKE 'postrider@%' LIMIT 1)";
  for (const [email, reason, status] of [
    ["angry@far.test", "complaint", 422],
    ["bounced@far.test", "bounce", 201],
  ] as const) {
    await service.app.db.write([
      {
        sql: `INSERT INTO suppressions (id, sender_id, email, reason, created_at) VALUES (?, ${hidden}, ?, ?, 1)`,
        args: [`sup_${email}`, email, reason],
      },
    ]);
    expect([email, (await ask(email)).status]).toEqual([email, status]);
  }
  expect((await ask("nobody")).body.error.param).toBe("email");
});

test(`a project has at most ${MAX_FORWARD_ADDRESSES} forward addresses`, async () => {
  const { call, ask } = await newProject();
  const { id } = (await call("GET", "/v1/me")).body.project;
  const rows = Array.from({ length: MAX_FORWARD_ADDRESSES - 1 }, (_, at) => ({
    sql: `INSERT INTO forward_addresses (id, sender_id, email, email_key, asked_at, mails, created_at)
      VALUES (?, ?, ?, ?, 0, 1, 0)`,
    args: [`fwd_full${at}${id}`, id, `full${at}@far.test`, `full${at}@far.test`],
  }));
  await service.app.db.write(rows);
  expect((await ask("last@far.test")).status).toBe(201);
  expect((await ask("over@far.test")).body.error).toMatchObject({ code: "quota_exceeded" });
});

test("the row of a removed address goes after a day, and its project may see no other's", async () => {
  const [one, other] = [await newProject(), await newProject()];
  const { body } = await one.ask("gone@far.test");
  for (const method of ["GET", "DELETE"])
    expect((await other.call(method, `/v1/forward-addresses/${body.id}`)).status).toBe(404);
  expect((await one.call("DELETE", `/v1/forward-addresses/${body.id}`)).status).toBe(204);
  expect((await one.call("DELETE", `/v1/forward-addresses/${body.id}`)).status).toBe(404);
  const row = () => service.app.db.first("SELECT 1 FROM forward_addresses WHERE id = ?", [body.id]);
  expect(await row()).not.toBeNull();
  clock.shift(DAY_MS + HOUR_MS);
  await until(async () => (await row()) === null);
});
