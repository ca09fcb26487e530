import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { APPROVAL_MS } from "../../src/store/messages/approvals.ts";
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
  test("sends to its addresses and domains only, in every kind of recipient", async () => {
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

  test("is refused with an entry that is neither an address nor a domain", async () => {
    for (const entry of ["ok.test", "@", "@-", "a b@ok.test", ""])
      expect([entry, (await make({ allowRecipients: [entry] })).body.error?.param]).toEqual([
        entry,
        "allowRecipients[0]",
      ]);
    expect((await make({ allowRecipients: [] })).status).toBe(422);
    expect((await make({ allowRecipients: Array(101).fill("@ok.test") })).status).toBe(422);
  });

  test("makes only keys that are bound as narrowly as itself", async () => {
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
  test("waits, and goes out once another key approves it", async () => {
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
      ...["accepted", "queued", "sending", "delivery"],
    ]);
    expect((await decide(id, "approve")).body.error.code).toBe("invalid_state");
    expect((await decide(id, "reject")).body.error.code).toBe("invalid_state");
  });

  test("fails with the reason if it is rejected", async () => {
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

  test("waits for its time after the approval, and for the approval after its time", async () => {
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

  test("fails after seven days without an approval, and rescheduling does not move that", async () => {
    const key = await secretOf({ approval: true });
    const { id } = (await send(key)).body;
    const at = new Date(clock.now() + 60_000).toISOString();
    expect((await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: at }, { key })).status).toBe(200);
    clock.shift(APPROVAL_MS - 60_000);
    expect((await service.call("GET", `/v1/emails/${id}`)).body.status).toBe("accepted");
    clock.shift(120_000);
    const record = await service.message(id, "failed");
    expect(record.recipients).toMatchObject([{ reason: "approval_expired" }]);
  });

  test("of another project is not found by an approver", async () => {
    const { id } = (await send(await secretOf({ approval: true }))).body;
    const account = { key: service.accountKey };
    const other = await service.call("POST", "/v1/senders", { name: "Other" }, account);
    const made = await service.call("POST", "/v1/api-keys", { name: "k", senderId: other.body.id }, account);
    expect((await decide(id, "approve", made.body.secret)).status).toBe(404);
    expect((await decide(id, "reject", made.body.secret)).status).toBe(404);
  });
});
