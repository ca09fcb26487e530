import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time/units.ts";
import { turnUntil, shiftedClock } from "../support/shifted-clock.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const FROM = { email: "hello@shop.test" };
/** Its domain does not exist. */
const BOUNCED = "ana@gone.test";

const clock = shiftedClock();
let service: TestService;
let domainId: string;

beforeAll(async () => {
  service = await startService({ DELIVERY: "mx" }, clock);
  domainId = await verifiedDomain(service, "shop.test");
});
afterAll(() => service.stop());

interface Entry {
  id: string;
  action: string;
  actor: { type: string; id: string | null; name: string | null };
  target: { type: string; id: string; name: string | null };
  changes: Record<string, [unknown, unknown]>;
}

async function entries(query = "", expected = 200): Promise<Entry[]> {
  const answer = await service.call("GET", `/v1/audit-log?limit=100${query}`, undefined, {
    key: service.accountKey,
  });
  expect(answer.status).toBe(expected);
  return answer.body.data;
}

const ofTarget = (id: string) => entries(`&target=${id}`);
const now = () => new Date(clock.now()).toISOString();

describe("a change", () => {
  test("a change by a key names the key, the request's fields before and after, and the target", async () => {
    const { body } = await service.call("POST", "/v1/templates", {
      slug: "hi",
      name: "Hi",
      subject: "A",
      text: "x",
    });
    await service.call("PATCH", `/v1/templates/${body.id}`, { subject: "B", text: "y".repeat(1001) });
    await service.call("DELETE", `/v1/templates/${body.id}`);
    const [deleted, updated, created] = await ofTarget(body.id);
    const me = (await service.call("GET", "/v1/me")).body.key;
    expect(created).toMatchObject({
      action: "template.create",
      actor: { type: "key", id: me.id, name: me.name },
      target: { type: "template", id: body.id, name: "Hi" },
      changes: { slug: [null, "hi"], subject: [null, "A"] },
    });
    expect(updated?.changes).toEqual({ subject: ["A", "B"], text: ["x", `${"y".repeat(1000)}…`] });
    expect(deleted).toMatchObject({ action: "template.delete", changes: { slug: ["hi", null] } });
  });

  test("a change that changes nothing leaves no entry", async () => {
    const { body } = await service.call("POST", "/v1/templates", {
      slug: "same",
      name: "S",
      subject: "A",
      text: "x",
    });
    await service.call("PATCH", `/v1/templates/${body.id}`, { subject: "A" });
    expect((await ofTarget(body.id)).map(({ action }) => action)).toEqual(["template.create"]);
  });

  test("a refused change leaves no entry", async () => {
    const since = now();
    expect((await service.call("DELETE", `/v1/domains/${domainId}x`)).status).toBe(404);
    expect((await service.call("POST", "/v1/domains", { name: "not a name" })).status).toBe(422);
    expect(await entries(`&after=${since}`)).toEqual([]);
  });

  test("what the service finds out itself is its own change", async () => {
    const found = await ofTarget(domainId);
    expect(found.map(({ action, actor }) => `${actor.type} ${action}`)).toEqual(
      expect.arrayContaining(["key domain.create"]),
    );
    expect(found.some(({ changes }) => changes.status?.[1] === "verified")).toBe(true);
  });

  test("a suppression that a bounce makes is the service's, and sending leaves no entry of the message", async () => {
    const since = now();
    const id = await service.send({ from: FROM, to: BOUNCED });
    await service.message(id, "bounced");
    const [made] = await entries(`&target=suppression&after=${since}`);
    expect(made).toMatchObject({
      action: "suppression.create",
      actor: { type: "service", id: null },
      target: { name: BOUNCED },
    });
    expect((await entries(`&after=${since}`)).map(({ action }) => action)).toEqual(["suppression.create"]);
    await service.call("DELETE", `/v1/suppressions?email=${BOUNCED}`);
    expect((await entries("&action=suppression.delete"))[0]).toMatchObject({
      actor: { type: "key" },
      target: { name: BOUNCED },
    });
  });

  test("canceling and moving a scheduled message name who did it", async () => {
    const at = new Date(clock.now() + DAY_MS).toISOString();
    const later = new Date(clock.now() + 2 * DAY_MS).toISOString();
    const id = await service.send({ from: FROM, to: "a@one.test", scheduledAt: at });
    await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: later });
    await service.call("POST", `/v1/emails/${id}/cancel`);
    expect((await ofTarget(id)).map(({ action, changes }) => [action, changes])).toEqual([
      ["email.cancel", { status: ["accepted", "failed"] }],
      ["email.reschedule", { scheduledAt: [at, later] }],
    ]);
  });

  test("an approval names the approver", async () => {
    const wanted = {
      name: "agent",
      approval: true,
      senderId: (await service.call("GET", "/v1/me")).body.project.id,
    };
    const { secret, id: agent } = (await service.call("POST", "/v1/api-keys", wanted)).body;
    const item = { from: FROM, to: "delivered@simulator.mail.test", subject: "Hi", text: "Hi" };
    // The notice's mail would bounce, and be in the trail at any time.
    const quiet = { notices: { off: ["approval_waiting"] } };
    await service.call("PATCH", "/v1/account", quiet, { key: service.accountKey });
    const { id } = (await service.call("POST", "/v1/emails", item, { key: secret })).body;
    await service.call("POST", `/v1/emails/${id}/approve`);
    const [entry] = await ofTarget(id);
    expect(entry).toMatchObject({ action: "email.approve", changes: { keyId: [agent, entry?.actor.id] } });
  });

  test("a webhook that is deleted in steps is deleted once", async () => {
    const hook = (
      await service.call("POST", "/v1/webhooks", { url: "https://hooks.example.com", eventTypes: ["*"] })
    ).body;
    await service.call("DELETE", `/v1/webhooks/${hook.id}`);
    expect((await ofTarget(hook.id)).map(({ action }) => action)).toEqual([
      "webhook.delete",
      "webhook.create",
    ]);
  });
});

describe("the list", () => {
  test("filters by actor, action, target, project and time, and pages through all of it", async () => {
    const all = await entries();
    const pages: Entry[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await service.call("GET", `/v1/audit-log?limit=3${query}`, undefined, {
        key: service.accountKey,
      });
      pages.push(...body.data);
      cursor = body.nextCursor;
    }
    expect(pages.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    for (const [query, passes] of [
      ["&actor=service", ({ actor }: Entry) => actor.type === "service"],
      ["&action=template.create", ({ action }: Entry) => action === "template.create"],
      ["&target=domain", ({ target }: Entry) => target.type === "domain"],
    ] as const) {
      const found = await entries(query);
      expect(found.length).toBeGreaterThan(0);
      expect(found).toEqual(all.filter(passes));
    }
    expect(await entries(`&before=${new Date(clock.now() - DAY_MS).toISOString()}`)).toEqual([]);
  });

  test("a time that is none is refused with the form of one", async () => {
    await entries("&after=yesterday", 422);
  });

  test("old entries are deleted after RETENTION_AUDIT_DAYS", async () => {
    const before = (await entries()).length;
    expect(before).toBeGreaterThan(0);
    clock.shift(366 * DAY_MS);
    await turnUntil(clock, async () => (await entries("&action=template.create")).length === 0);
  });
});
