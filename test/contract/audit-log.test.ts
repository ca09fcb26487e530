import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { bodyFor, makePath, missingFor, queryFor } from "../support/estate.ts";
import { fill, type Operation } from "../support/openapi-document.ts";
import { type RawAnswer, startWorld, type World } from "../support/tenants.ts";

setDefaultTimeout(180_000);

/** Operations that write and leave no entry, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  "PATCH /v1/notices/{}": "the mark of who reads them, which is no configuration",
  "POST /v1/emails": "the message is the record, and names its key",
  "POST /v1/emails/batch": "as POST /v1/emails",
  "POST /v1/threads/{}/reply": "as POST /v1/emails",
  "POST /v1/emails/{}/release": "as POST /v1/emails",
  "POST /v1/emails/{}/forward": "as POST /v1/emails",
  "PUT /v1/drafts/{}": "a draft is saved every few seconds; that it was sent or deleted is an entry",
  "POST /v1/inbound/simulate": "as an arriving message",
  "POST /v1/emails/check": "writes nothing",
  "POST /v1/rules/try": "writes nothing",
  "POST /v1/segments/count": "writes nothing",
  "POST /v1/broadcasts/{}/check": "writes nothing",
  "POST /v1/broadcasts/{}/check-links": "writes nothing",
  "POST /v1/broadcasts/{}/test": "as POST /v1/emails",
  "POST /v1/templates/preview": "writes nothing",
  "POST /v1/templates/{}/render": "writes nothing",
  "POST /v1/domains/{}/verify": "asks the DNS; what it finds changed is an entry, which flow/audit-log shows",
  "POST /v1/webhooks/{}/test": "a sample in the log of the webhook",
  "POST /v1/webhooks/{}/deliveries/{}/replay":
    "the estate has no failed delivery; flow/audit-log replays one",
  "POST /v1/emails/{}/approve": "the estate has no waiting message; flow/audit-log approves one",
  "POST /v1/emails/{}/reject": "as approve",
  "PATCH /v1/domains/{}": "the estate changes nothing; flow/audit-log does",
  "POST /v1/contacts/{}/resubscribe": "as PATCH /v1/domains/{}",
  "DELETE /v1/suppressions": "as PATCH /v1/domains/{}",
};

const writes = ({ method, level }: Operation): boolean => method !== "GET" && level !== "open";

let world: World;

beforeAll(async () => {
  world = await startWorld();
}, 60_000);
afterAll(() => world.stop());

async function entriesOf({ headers }: RawAnswer): Promise<Record<string, unknown>[]> {
  const { json } = await world.call("GET", "/v1/audit-log?limit=100", { key: world.home.wide });
  const request = headers.get("x-request-id");
  return json.data.filter(({ requestId }: { requestId: string }) => requestId === request);
}

describe("the audit trail", () => {
  test("has an entry of each operation that writes", async () => {
    const faults: string[] = [];
    let tried = 0;
    for (const operation of world.operations.filter(writes)) {
      if (missingFor(operation).length > 0 || WITHOUT[operation.key] !== undefined) continue;
      const made = await makePath(operation, world, world.home);
      const path = fill(
        operation,
        made.map(({ id }) => id),
      );
      const key = operation.level === "account" ? world.home.wide : world.home.key;
      const body = bodyFor(operation, world, world.home, path);
      const answer = await world.call(operation.method, path + queryFor(operation, path), { key }, body);
      const entries = await entriesOf(answer);
      tried++;
      if (answer.status >= 300)
        faults.push(`${operation.key}: ${answer.status} ${answer.text.slice(0, 200)}`);
      else if (entries.length === 0) faults.push(`${operation.key} leaves no entry`);
      for (const { actor } of entries as { actor: { type: string; id: string } }[])
        if (actor.type !== "key" || !actor.id.startsWith("key_"))
          faults.push(`${operation.key}: ${JSON.stringify(actor)}`);
    }
    expect(faults).toEqual([]);
    // None is skipped without a reason.
    expect(tried + Object.keys(WITHOUT).length).toBe(world.operations.filter(writes).length);
  });

  test("knows each exception, and no operation that is gone", () => {
    const known = new Set(world.operations.map(({ key }) => key));
    expect(Object.keys(WITHOUT).filter((key) => !known.has(key))).toEqual([]);
  });

  test("shows no secret of a key, webhook or relay", async () => {
    const { text } = await world.call("GET", "/v1/audit-log?limit=100", { key: world.home.wide });
    expect(text).toContain('"secret":["***","***"]');
    expect(text).not.toMatch(/whsec_|pr_live_|secretHash|smtps?:/);
  });

  test("hides the changes of other accounts", async () => {
    const { json, text } = await world.call("GET", "/v1/audit-log?limit=100", { key: world.stranger.wide });
    expect(json.data.length).toBeGreaterThan(0);
    expect(text).not.toContain(world.home.senderId);
  });

  test("is for account-wide keys alone", async () => {
    const { status } = await world.call("GET", "/v1/audit-log", { key: world.home.key });
    expect(status).toBe(403);
  });

  test("is exported whole, one JSON object per line", async () => {
    const list = (await world.call("GET", "/v1/audit-log?limit=100", { key: world.home.wide })).json;
    const { headers, text } = await world.call("GET", "/v1/audit-log", {
      key: world.home.wide,
      headers: { accept: "application/x-ndjson" },
    });
    expect(headers.get("content-type")).toBe("application/x-ndjson");
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.slice(0, list.data.length)).toEqual(list.data);
    expect(lines.length).toBeGreaterThan(list.data.length - 1);
  });
});
