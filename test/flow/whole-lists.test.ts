import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ROWS_AT_A_TIME } from "../../src/http/routing/whole-list.ts";
import { newId } from "../../src/core/ids.ts";
import { insertContact, NOT_ENGAGED } from "../../src/store/projects/contacts.ts";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

async function csv(path: string): Promise<string[]> {
  const response = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${service.projectKey}`, accept: "text/csv" },
  });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8"]);
  return (await response.text()).split("\r\n");
}

describe("a whole list as CSV", () => {
  test("contacts have a heading, quoted values, and no cell that a program would run as a formula", async () => {
    const body = {
      email: "ana@one.test",
      firstName: '=HYPERLINK("x")',
      lastName: "Lima, Ana",
      metadata: { id: "7" },
    };
    await service.call("POST", "/v1/contacts", body);
    const [head, row, end] = await csv("/v1/contacts");
    expect(head).toBe(
      "email,firstName,lastName,subscribed,unsubscribedAt,metadata,properties,topics,lastSentAt,lastOpenedAt,lastClickedAt,createdAt,updatedAt",
    );
    expect(row).toStartWith(
      `ana@one.test,"'=HYPERLINK(""x"")","Lima, Ana",true,,"{""id"":""7""}",{},{},,,,2`,
    );
    expect(end).toBe("");
  });

  test("suppressions have their reason, and a filter holds", async () => {
    await service.call("POST", "/v1/suppressions", { email: "ben@one.test", note: "asked by phone" });
    expect((await csv("/v1/suppressions"))[1]).toStartWith("ben@one.test,manual,,,asked by phone,,2");
    expect(await csv("/v1/suppressions?reason=bounce")).toEqual([
      "email,reason,bounceType,messageId,note,expiresAt,createdAt",
      "",
    ]);
  });

  test("a list of more rows than are read at a time is whole, each row once", async () => {
    const senderId = (await service.call("GET", "/v1/me")).body.project.id;
    const now = Date.now();
    const contacts = Array.from({ length: ROWS_AT_A_TIME * 2 + 1 }, (_, at) => ({
      id: newId("con", now),
      senderId,
      email: `many-${at}@one.test`,
      emailKey: `many-${at}@one.test`,
      firstName: null,
      lastName: null,
      subscribed: true,
      unsubscribedAt: null,
      metadata: {},
      properties: {},
      topics: {},
      consent: [],
      ...NOT_ENGAGED,
      createdAt: now,
      updatedAt: now,
    }));
    await service.app.db.write(contacts.map(insertContact));
    const rows = await csv("/v1/contacts?q=many-");
    const addresses = rows.slice(1, -1).map((row) => row.split(",")[0]);
    expect(new Set(addresses).size).toBe(contacts.length);
    expect(addresses.length).toBe(contacts.length);
  });

  test("a request that accepts anything gets a page of JSON", async () => {
    const { headers, body } = await service.call("GET", "/v1/contacts?limit=1", undefined, {
      headers: { accept: "*/*" },
    });
    expect(headers.get("content-type")).toStartWith("application/json");
    expect(body.data.length).toBe(1);
  });
});
