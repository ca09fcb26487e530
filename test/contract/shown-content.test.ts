import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startService, type TestService } from "../support/service.ts";

/** Answers to changes of what holds no words of people: their callers need the records, URLs and states in them. */
const CONFIGURATION: ReadonlySet<string> = new Set([
  "Notice",
  "AccountSettings",
  "Domain",
  "CheckedDomain",
  "Receiving",
  "OwnRecord",
  "Rule",
  "ContactProperty",
  "Topic",
  "Segment",
  "Inbox",
  "Webhook",
  "ApiKey",
  "Sender",
  "Member",
  "Account",
  "Lane",
  "Route",
  // Read with the scope that writes it.
  "Draft",
]);

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

interface Operation {
  operationId: string;
  description?: string;
  responses: Record<string, { content?: Record<string, { schema: unknown }> }>;
}

/** Returns the names of the schemas that an answer consists of. */
function titlesIn(operation: Operation): string[] {
  const text = JSON.stringify(operation.responses["200"]?.content?.["application/json"]?.schema ?? {});
  return [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name ?? "");
}

test("every operation that changes something people wrote, and shows it, needs the scope that reads it", async () => {
  const document = (await service.call("GET", "/docs/json")).body;
  const operations = Object.values(document.paths as Record<string, Record<string, Operation>>).flatMap(
    (path) => Object.entries(path).map(([method, operation]) => ({ method, operation })),
  );
  const read = new Set(
    operations.flatMap(({ method, operation }) => (method === "get" ? titlesIn(operation) : [])),
  );
  expect(read).toContain("Contact");
  const showing = operations.filter(
    ({ method, operation }) =>
      method !== "get" && titlesIn(operation).some((title) => read.has(title) && !CONFIGURATION.has(title)),
  );
  const said = showing.map(({ operation: { operationId, description = "" } }) => [
    operationId,
    /If the key lacks `\w+:read`, the answer confirms/.test(description),
  ]);
  expect(said.filter(([, isSaid]) => isSaid === false)).toEqual([]);
  expect(said.map(([id]) => id).sort()).toEqual([
    "addSuppression",
    "cancelBroadcast",
    "pauseBroadcast",
    "resubscribeContact",
    "resumeBroadcast",
    "sendBroadcast",
    "unsubscribeContact",
    "updateBroadcast",
    "updateContact",
    "updateTemplate",
    "updateThread",
  ]);
});

describe("a key that may change something but not read it", () => {
  const keyWith = async (...scopes: string[]): Promise<string> => {
    const me = (await service.call("GET", "/v1/me")).body;
    const wanted = { name: "k", senderId: me.project.id, scopes };
    return (await service.call("POST", "/v1/api-keys", wanted)).body.secret;
  };

  test("a key that may change something but not read it gets a confirmation of a change to a template, contact or suppression", async () => {
    const template = { name: "T", subject: "S", text: "secret words" };
    const { id } = (await service.call("POST", "/v1/templates", template)).body;
    const contact = (await service.call("POST", "/v1/contacts", { email: "ana@x.test", firstName: "Ana" }))
      .body.id;
    const entry = { email: "ben@x.test", note: "secret note" };
    const suppression = (await service.call("POST", "/v1/suppressions", entry)).body.id;
    const rows = [
      ["templates", "PATCH", `/v1/templates/${id}`, { name: "U" }, id],
      ["contacts", "PATCH", `/v1/contacts/${contact}`, { lastName: "B" }, contact],
      ["contacts", "POST", `/v1/contacts/${contact}/unsubscribe`, undefined, contact],
      ["suppressions", "POST", "/v1/suppressions", { email: "ben@x.test" }, suppression],
    ] as const;
    for (const [resource, method, path, body, shown] of rows) {
      const key = await keyWith(`${resource}:write`);
      expect([path, await service.call(method, path, body, { key })]).toMatchObject([path, { status: 200 }]);
      expect((await service.call(method, path, body, { key })).body).toEqual({ id: shown });
      const reader = await keyWith(`${resource}:write`, `${resource}:read`);
      expect(
        Object.keys((await service.call(method, path, body, { key: reader })).body).length,
      ).toBeGreaterThan(3);
    }
  });

  test("a key that may change something but not read it gets no more of an answer that is replayed", async () => {
    const contact = (await service.call("POST", "/v1/contacts", { email: "cy@x.test" })).body.id;
    const path = `/v1/contacts/${contact}/unsubscribe`;
    const headers = { "idempotency-key": "once" };
    expect((await service.call("POST", path, {}, { headers })).body.email).toBe("cy@x.test");
    const key = await keyWith("contacts:write");
    const replayed = await service.call("POST", path, {}, { headers, key });
    expect(replayed.body).toEqual({ id: contact });
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
  });

  test("creates something and sees what it said itself", async () => {
    const key = await keyWith("contacts:write");
    const made = await service.call("POST", "/v1/contacts", { email: "di@x.test" }, { key });
    expect(made).toMatchObject({ status: 201, body: { email: "di@x.test" } });
  });
});
