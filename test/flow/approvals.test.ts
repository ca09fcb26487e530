import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { APPROVAL_MS } from "../../src/store/messages/approvals.ts";
import { allRoutes } from "../support/all-routes.ts";
import { until } from "../support/poll.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const FROM = { email: "agent@shop.test" };
const TO = "delivered@simulator.mail.test";
const mail = (to: string | string[] = TO) => ({ from: FROM, to, subject: "Hi", text: "Hi" });

const clock = shiftedClock();
let service: TestService;
let projectId: string;
beforeAll(async () => {
  service = await startService({}, clock);
  await verifiedDomain(service, "shop.test");
  projectId = (await service.call("GET", "/v1/me")).body.project.id;
});
afterAll(() => service.stop());

/** Makes a key of the project with the caller's key. Returns the answer. */
const make = (wanted: Record<string, unknown>, key = service.projectKey) =>
  service.call("POST", "/v1/api-keys", { name: "agent", senderId: projectId, ...wanted }, { key });
const secretOf = async (wanted: Record<string, unknown>) => (await make(wanted)).body.secret as string;
const send = (key: string, body: Record<string, unknown> = mail()) =>
  service.call("POST", "/v1/emails", body, { key });
const decide = (id: string, verb: "approve" | "reject", key = service.projectKey, body?: unknown) =>
  service.call("POST", `/v1/emails/${id}/${verb}`, body, { key });

describe("a key with allowRecipients", () => {
  test("a key with allowRecipients sends to its addresses and domains only, in every kind of recipient", async () => {
    const key = await secretOf({ allowRecipients: ["Delivered@Simulator.Mail.Test", "@ok.test"] });
    expect((await send(key)).status).toBe(202);
    expect((await send(key, { ...mail("any@ok.test") })).status).toBe(202);
    for (const refused of [
      mail("eve@other.test"),
      mail("eve@sub.ok.test"),
      { ...mail(), cc: ["eve@other.test"] },
      { ...mail(), bcc: ["eve@other.test"] },
    ])
      expect(await send(key, refused)).toMatchObject({
        status: 403,
        body: { error: { type: "permission_error", code: "recipient_not_allowed" } },
      });
    const batch = await service.call(
      "POST",
      "/v1/emails/batch",
      { emails: [mail(), mail("eve@x.test")] },
      { key },
    );
    expect(batch.body.data).toMatchObject([
      { status: "queued" },
      { error: { code: "recipient_not_allowed", param: "to" } },
    ]);
  });

  test("a key with allowRecipients is refused with an entry that is neither an address nor a domain", async () => {
    for (const entry of ["ok.test", "@", "@-", "a b@ok.test", ""])
      expect([entry, (await make({ allowRecipients: [entry] })).body.error?.param]).toEqual([
        entry,
        "allowRecipients[0]",
      ]);
    expect((await make({ allowRecipients: [] })).status).toBe(422);
    expect((await make({ allowRecipients: Array(101).fill("@ok.test") })).status).toBe(422);
  });

  test("a key can only create keys with the same restrictions or tighter ones", async () => {
    const key = await secretOf({ allowRecipients: ["@ok.test"], approval: true });
    const rows: [Record<string, unknown>, number][] = [
      [{}, 403],
      [{ allowRecipients: ["@ok.test"] }, 403],
      [{ approval: true }, 403],
      [{ approval: true, allowRecipients: ["@other.test"] }, 403],
      [{ approval: true, allowRecipients: ["a@ok.test", "@other.test"] }, 403],
      [{ approval: true, allowRecipients: ["a@ok.test"] }, 201],
      [{ approval: true, allowRecipients: ["@ok.test"] }, 201],
    ];
    for (const [wanted, status] of rows)
      expect([wanted, (await make(wanted, key)).status]).toEqual([wanted, status]);
  });
});

describe("a key with bounds", () => {
  const over = async (wanted: Record<string, unknown>): Promise<[string, string]> => {
    const { id, secret } = (await make(wanted)).body;
    return [id, secret];
  };

  test("neither revokes nor renames keys that may do more than itself", async () => {
    const bounds = [{ approval: true }, { allowRecipients: ["@ok.test"] }];
    const [unbound] = await over({});
    const [peer] = await over({ approval: true, allowRecipients: ["a@ok.test"] });
    for (const bound of bounds) {
      const [own, key] = await over(bound);
      for (const [id, status] of [
        [unbound, 403],
        [peer, 200],
        [own, 200],
      ] as const) {
        const renamed = await service.call("PATCH", `/v1/api-keys/${id}`, { name: "mine" }, { key });
        expect([bound, renamed.status]).toEqual([bound, status]);
      }
      expect(
        (await service.call("DELETE", `/v1/api-keys/${unbound}`, undefined, { key })).body.error,
      ).toMatchObject({
        type: "permission_error",
        param: Object.keys(bound)[0],
      });
      expect((await service.call("DELETE", `/v1/api-keys/${own}`, undefined, { key })).status).toBe(204);
    }
  });

  test("a key with bounds changes nothing of the account and deletes no data, whatever operation it tries", async () => {
    const changes = (await allRoutes()).filter(
      ({ level, method, path, scope }) =>
        (level === "account" || scope === "data:delete") && method !== "GET" && !path.startsWith("/test/"),
    );
    const own = changes.filter(({ accountWide, scope }) => accountWide !== true && scope !== "data:delete");
    // Changes of keys are compared with the key's own rights. The tools of an agent call the API with its key.
    expect(own.map(({ operationId }) => operationId).sort()).toEqual([
      "createApiKey",
      "mcp DELETE",
      "mcp POST",
      "renameApiKey",
      "revokeApiKey",
      // Marks a notice as seen.
      "updateNotice",
    ]);
    // Only a service under test has the operations outside of /v1.
    const refused = changes.filter((route) => !own.includes(route) && route.path.startsWith("/v1/"));
    expect(refused.length).toBeGreaterThan(6);
    for (const bound of [{ approval: true }, { allowRecipients: ["@ok.test"] }]) {
      const wanted = { name: "agent", ...bound };
      const { secret } = (await service.call("POST", "/v1/api-keys", wanted, { key: service.accountKey }))
        .body;
      for (const { method, path } of refused) {
        const body = method === "DELETE" ? undefined : {};
        const headers = { "X-Service-Product": "default" };
        const called = await service.call(method, path.replace(/:\w+/, "x"), body, { key: secret, headers });
        expect([method, path, called]).toMatchObject([
          method,
          path,
          { status: 403, body: { error: { type: "permission_error", param: Object.keys(bound)[0] } } },
        ]);
      }
      expect((await service.call("GET", "/v1/senders", undefined, { key: secret })).status).toBe(200);
    }
  });

  test("decides only about messages to recipients of its own", async () => {
    const agent = await secretOf({ approval: true });
    const key = await secretOf({ allowRecipients: ["@ok.test"] });
    const { id } = (await send(agent, mail(["a@ok.test", "eve@other.test"]))).body;
    for (const verb of ["approve", "reject"] as const)
      expect((await decide(id, verb, key)).body.error).toMatchObject({ code: "recipient_not_allowed" });
    const allowed = (await send(agent, mail("a@ok.test"))).body.id;
    expect((await decide(allowed, "approve", key)).status).toBe(200);
  });
});

describe("a send of a key with approval", () => {
  test("a send of a key with approval waits, and goes out once another key approves it", async () => {
    const key = await secretOf({ approval: true });
    const sent = await send(key);
    expect(sent).toMatchObject({ status: 202, body: { status: "accepted" } });
    const { id } = sent.body;
    const waiting = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(waiting).toMatchObject({
      status: "accepted",
      awaitingApproval: true,
      recipients: [{ reason: "awaiting_approval", attempts: 0 }],
    });
    const listed = async () => (await service.call("GET", "/v1/emails?limit=1")).body.data[0];
    expect(await listed()).toMatchObject({ id, awaitingApproval: true });
    expect((await decide(id, "approve", key)).status).toBe(403);
    const other = await secretOf({ approval: true });
    expect((await decide(id, "approve", other)).status).toBe(403);
    expect((await decide(id, "approve", await secretOf({ scopes: ["emails:send"] }))).body.error.code).toBe(
      "missing_scope",
    );
    expect(await decide(id, "approve")).toMatchObject({ status: 200, body: { id, status: "queued" } });
    const record = await service.message(id, "delivered");
    expect(record.recipients[0].reason).toBeNull();
    expect(await listed()).not.toContainKey("awaitingApproval");
    expect(record.events.map(({ type }: { type: string }) => type)).toEqual([
      "accepted",
      "queued",
      "sending",
      "delivery",
    ]);
    expect((await decide(id, "approve")).body.error.code).toBe("invalid_state");
    expect((await decide(id, "reject")).body.error.code).toBe("invalid_state");
  });

  test("a send of a key with approval fails with the reason if it is rejected", async () => {
    const { id } = (await send(await secretOf({ approval: true }))).body;
    expect((await decide(id, "reject", undefined, { reason: "x".repeat(501) })).status).toBe(422);
    const answer = await decide(id, "reject", undefined, { reason: "wrong recipient" });
    expect(answer).toMatchObject({ status: 200, body: { id, status: "failed" } });
    const record = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(record).toMatchObject({ status: "failed", recipients: [{ reason: "wrong recipient" }] });
    expect(record.events.at(-1)).toMatchObject({
      type: "failed",
      data: { failed: { reason: "wrong recipient" } },
    });
  });

  test("a send of a key with approval waits for its time after the approval, and for the approval after its time", async () => {
    const key = await secretOf({ approval: true });
    const at = new Date(clock.now() + 3_600_000).toISOString();
    const early = (await send(key, { ...mail(), scheduledAt: at })).body.id;
    const late = (await send(key, { ...mail(), scheduledAt: at })).body.id;
    expect((await decide(early, "approve")).body).toEqual({ id: early, status: "accepted" });
    clock.shift(3_700_000);
    await service.message(early, "delivered");
    expect((await service.call("GET", `/v1/emails/${late}`)).body.status).toBe("accepted");
    expect((await decide(late, "approve")).body).toEqual({ id: late, status: "queued" });
    await service.message(late, "delivered");
  });

  test("a send of a key with approval fails after seven days without an approval", async () => {
    const { id } = (await send(await secretOf({ approval: true }))).body;
    clock.shift(APPROVAL_MS - 60_000);
    expect((await service.call("GET", `/v1/emails/${id}`)).body.status).toBe("accepted");
    clock.shift(120_000);
    const record = await service.message(id, "failed");
    expect(record.recipients).toMatchObject([{ reason: "approval_expired" }]);
  });

  test("a send of a key with approval cannot be moved to another time before or after the approval, which is about that time", async () => {
    const key = await secretOf({ approval: true });
    const inAnHour = new Date(clock.now() + 3_600_000).toISOString();
    const { id } = (await send(key, { ...mail(), scheduledAt: inAnHour })).body;
    const move = async (by: string) =>
      (await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: "2020-01-01T00:00:00Z" }, { key: by }))
        .body;
    expect((await move(service.projectKey)).error).toMatchObject({ code: "invalid_state" });
    expect((await move(key)).error.type).toBe("permission_error");
    await decide(id, "approve");
    expect((await move(key)).error.type).toBe("permission_error");
    expect((await move(await secretOf({ allowRecipients: ["@ok.test"] }))).error.code).toBe(
      "recipient_not_allowed",
    );
    expect((await service.call("GET", `/v1/emails/${id}`)).body.scheduledAt).toBe(inAnHour);
    expect((await move(service.projectKey)).status).toBe("accepted");
    await service.message(id, "delivered");
  });

  test("a send of a key with approval shows its approver the template as it leaves, whatever happens to the template", async () => {
    const template = {
      name: "T",
      subject: "Hi {{ n }}",
      text: "Dear {{ n }}",
      html: "<p>{{ unsubscribeUrl }}</p>",
    };
    const made = (await service.call("POST", "/v1/templates", template)).body;
    const key = await secretOf({ approval: true });
    const asked = { from: FROM, to: TO, templateId: made.id, data: { n: "Ana" }, unsubscribeLink: true };
    const { id } = (await send(key, asked)).body;
    const seen = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(seen).toMatchObject({
      subject: "Hi Ana",
      text: "Dear Ana",
      templateId: made.id,
      data: { n: "Ana" },
    });
    const other = { subject: "Pay now", text: "Pay now", html: null };
    await service.call("PATCH", `/v1/templates/${made.id}`, other);
    await decide(id, "approve");
    await service.call("DELETE", `/v1/templates/${made.id}`);
    const sent = await service.message(id, "delivered");
    expect(sent).toMatchObject({ subject: "Hi Ana", text: "Dear Ana" });
    const authorization = `Bearer ${service.projectKey}`;
    const raw = await (
      await fetch(`${service.url}/v1/emails/${id}/raw`, { headers: { authorization } })
    ).text();
    expect(raw).toContain("Dear Ana");
    expect(raw).toMatch(/<p>http[^<]*\/u\//);
    expect(raw).not.toContain("Pay now");
  });

  test("a send of a key with approval is refused if its template does not render", async () => {
    const broken = { name: "B", subject: "x", text: "{{ missing }}" };
    const made = (await service.call("POST", "/v1/templates", broken)).body;
    const asked = { from: FROM, to: TO, templateId: made.id, data: { n: 1 } };
    expect((await send(await secretOf({ approval: true }), asked)).body.error.code).toBe("rendering_failure");
  });

  test("an approver does not find another project's sends", async () => {
    const { id } = (await send(await secretOf({ approval: true }))).body;
    const account = { key: service.accountKey };
    const other = await service.call("POST", "/v1/senders", { name: "Other" }, account);
    const made = await service.call("POST", "/v1/api-keys", { name: "k", senderId: other.body.id }, account);
    expect((await decide(id, "approve", made.body.secret)).status).toBe(404);
    expect((await decide(id, "reject", made.body.secret)).status).toBe(404);
  });
});

describe("scheduled mail of a revoked key", () => {
  const scheduled = async (key: string): Promise<string> => {
    const scheduledAt = new Date(clock.now() + 3_600_000).toISOString();
    return (await send(key, { ...mail(), scheduledAt })).body.id;
  };
  const record = async (id: string) => (await service.call("GET", `/v1/emails/${id}`)).body;
  const held = async (id: string) => {
    await until(async () => (await record(id)).recipients[0].reason !== null);
    return record(id);
  };

  test("scheduled mail of a revoked key is held at its time with the reason, until somebody approves or cancels it", async () => {
    const { id: keyId, secret } = (await make({})).body;
    const [approved, canceled, forgotten] = await Promise.all([secret, secret, secret].map(scheduled));
    const live = await scheduled(service.projectKey);
    await service.call("DELETE", `/v1/api-keys/${keyId}`);
    clock.shift(3_700_000);
    await service.message(live, "delivered");
    for (const id of [approved, canceled, forgotten])
      expect(await held(id ?? "")).toMatchObject({
        status: "accepted",
        awaitingApproval: true,
        recipients: [{ reason: "key_revoked", attempts: 0 }],
      });
    const explained = (await service.call("GET", `/v1/emails/${approved}/explain`)).body;
    expect(JSON.stringify(explained)).toContain("was revoked before its time came");
    expect((await decide(approved ?? "", "approve")).body.status).toBe("queued");
    await service.message(approved ?? "", "delivered");
    expect((await service.call("POST", `/v1/emails/${canceled}/cancel`)).body.status).toBe("failed");
    clock.shift(APPROVAL_MS + 60_000);
    expect((await service.message(forgotten ?? "", "failed")).recipients).toMatchObject([
      { reason: "approval_expired" },
    ]);
  });

  test("scheduled mail of a revoked key is held as well if it is moved to now", async () => {
    const { id: keyId, secret } = (await make({})).body;
    const id = await scheduled(secret);
    await service.call("DELETE", `/v1/api-keys/${keyId}`);
    await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: "2020-01-01T00:00:00Z" });
    expect((await held(id)).recipients[0].reason).toBe("key_revoked");
  });

  test("scheduled mail of a revoked key goes out if another key has approved it", async () => {
    const { id: keyId, secret } = (await make({ approval: true })).body;
    const id = await scheduled(secret);
    await decide(id, "approve");
    await service.call("DELETE", `/v1/api-keys/${keyId}`);
    clock.shift(3_700_000);
    await service.message(id, "delivered");
  });
});
