import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { MAX_KEY_INBOXES } from "../../src/core/key-bounds.ts";
import { bodyFor } from "../support/estate.ts";
import { fill } from "../support/openapi-document.ts";
import { startWorld, type Tenant, type World } from "../support/tenants.ts";

const LIMIT_MS = 120_000;
setDefaultTimeout(LIMIT_MS);

/**
 * What a key with `inboxIds` may do. Every other operation of the document is refused. `at`: the path names something of an inbox, so
 * that of another inbox is not found. `list`: shows what is in its inboxes alone. `own`: shows the key itself.
 */
const ALLOWED: Readonly<Record<string, "at" | "list" | "own">> = {
  "GET /v1/me": "own",
  "GET /v1/inboxes": "list",
  "GET /v1/inboxes/{}": "at",
  "GET /v1/inboxes/{}/threads": "at",
  "GET /v1/emails": "list",
  "GET /v1/emails/{}": "at",
  "GET /v1/emails/{}/raw": "at",
  "GET /v1/emails/{}/attachments/{}": "at",
  "GET /v1/threads": "list",
  "GET /v1/threads/{}": "at",
  "GET /v1/threads/{}/messages": "at",
  "PATCH /v1/threads/{}": "at",
  "POST /v1/threads/{}/reply": "at",
};

/** One inbox with a message that has a file. */
interface Box {
  inboxId: string;
  threadId: string;
  messageId: string;
  attachmentId: string;
}

let world: World;
let home: Tenant;
let mine: Box;
let other: Box;
let key: string;

beforeAll(async () => {
  world = await startWorld();
  home = world.home;
  mine = await newBox("mine");
  other = await newBox("other");
  key = await boundKey([mine.inboxId]);
}, LIMIT_MS);
afterAll(() => world.stop());

const asHome = (method: string, path: string, body?: unknown) =>
  world.call(method, path, { key: home.key }, body);
const bound = (method: string, path: string, body?: unknown) => world.call(method, path, { key }, body);

async function newBox(name: string): Promise<Box> {
  const made = await asHome("POST", "/v1/inboxes", { address: `${name}@${home.domain}` });
  const file = { filename: "a.txt", content: btoa(name), contentType: "text/plain" };
  const mail = { inboxId: made.json.id, subject: `zz${name}`, text: "Hi", attachments: [file] };
  const { messageId, threadId } = (await asHome("POST", "/v1/inbound/simulate", mail)).json;
  const record = (await asHome("GET", `/v1/emails/${messageId}`)).json;
  return { inboxId: made.json.id, threadId, messageId, attachmentId: record.attachments[0].id };
}

const newKey = (body: object) =>
  world.call("POST", "/v1/api-keys", { key: home.wide }, { name: "Agent", senderId: home.senderId, ...body });
const boundKey = async (inboxIds: string[]): Promise<string> => (await newKey({ inboxIds })).json.secret;

/** The values of a path's segments that belong to a box. */
function valuesOf(path: string, box: Box): string[] {
  if (path.startsWith("/v1/inboxes/")) return [box.inboxId];
  return path.startsWith("/v1/threads/") ? [box.threadId] : [box.messageId, box.attachmentId];
}

describe("a key with inboxIds", () => {
  test("is refused by every operation that the table does not name, whatever it is asked", async () => {
    const tried: string[] = [];
    for (const operation of world.operations) {
      if (operation.level === "open" || ALLOWED[operation.key] !== undefined) continue;
      const values = operation.pathParams.map(() => mine.messageId);
      const needs = operation.body !== null || operation.method === "POST";
      const answer = await bound(operation.method, fill(operation, values), needs ? {} : undefined);
      expect([operation.key, answer.status]).toEqual([operation.key, 403]);
      tried.push(operation.key);
    }
    expect(tried.length).toBeGreaterThan(100);
  });

  test("is refused by operations that are not in the document, too", async () => {
    for (const [method, path] of [
      ["GET", "/resend/emails/receiving"],
      ["POST", "/resend/emails"],
    ] as const)
      expect([path, (await bound(method, path, method === "POST" ? {} : undefined)).status]).toEqual([
        path,
        403,
      ]);
  });

  const named = Object.entries(ALLOWED).flatMap(([name, kind]) => (kind === "at" ? [name] : []));
  test.each(named)("%s finds what is in its inbox, and nothing of another one", async (name) => {
    const operation = world.operations.find((one) => one.key === name);
    if (operation === undefined) throw new Error(`the document has no ${name}`);
    const body = operation.body === null ? undefined : bodyFor(operation, world, home);
    const call = (box: Box) => bound(operation.method, fill(operation, valuesOf(operation.path, box)), body);
    expect((await call(mine)).status).toBeOneOf([200, 202]);
    const before = (await asHome("GET", `/v1/threads/${other.threadId}`)).text;
    const refused = await call(other);
    expect(refused.status).toBe(404);
    expect(refused.text).not.toContain("zzother");
    expect((await asHome("GET", `/v1/threads/${other.threadId}`)).text).toBe(before);
    // What is in no inbox, or of another project, is not found either.
    for (const box of [
      { inboxId: home.inboxId, threadId: "thr_x", messageId: home.receivedId, attachmentId: "att_x" },
    ])
      expect((await call(box)).status).toBe(404);
  });

  test("lists only what is in its inboxes", async () => {
    const ids = ({ json }: { json: { data: { id: string }[] } }) => json.data.map(({ id }) => id);
    expect(ids(await bound("GET", "/v1/inboxes"))).toEqual([mine.inboxId]);
    const emails = ids(await bound("GET", "/v1/emails?direction=inbound"));
    expect(emails).toEqual([mine.messageId]);
    for (const query of ["q=zzother", "text=zzother", `status=delivered&q=zz`, "trust=unauthenticated"]) {
      const found = ids(await bound("GET", `/v1/emails?${query}`));
      expect([query, found.includes(other.messageId)]).toEqual([query, false]);
    }
    expect(ids(await bound("GET", `/v1/threads?inboxId=${mine.inboxId}`))).toEqual([mine.threadId]);
    for (const path of ["/v1/threads", `/v1/threads?inboxId=${other.inboxId}`])
      expect((await bound("GET", path)).status).toBe(422);
  });

  test("waits for mail of its inboxes alone", async () => {
    const waiting = bound("GET", `/v1/emails?after=${new Date().toISOString()}&direction=inbound&wait=30`);
    const simulate = (inboxId: string) =>
      asHome("POST", "/v1/inbound/simulate", { inboxId, subject: "Later" });
    await simulate(other.inboxId);
    const { messageId } = (await simulate(mine.inboxId)).json;
    expect((await waiting).json.data.map(({ id }: { id: string }) => id)).toEqual([messageId]);
  });

  test("reaches no other inbox through the tools of MCP", async () => {
    const tool = async (name: string, args: object) => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
      const headers = { accept: "application/json, text/event-stream" };
      return (await world.call("POST", "/mcp", { key, headers }, message)).text;
    };
    expect(await tool("get_email", { id: mine.messageId })).toContain("zzmine");
    expect(await tool("list_inboxes", {})).not.toContain(other.inboxId);
    for (const [name, args] of [
      ["get_email", { id: other.messageId }],
      ["get_thread", { id: other.threadId }],
      ["list_threads", { inboxId: other.inboxId }],
      ["reply", { threadId: other.threadId, text: "Hi" }],
      ["explain_delivery", { id: other.messageId }],
      ["search_emails", { q: "zzother" }],
    ] as const)
      expect(await tool(name, args)).not.toContain("zzother");
  });

  test("is shown with its inboxes, and needs ids of its project's inboxes", async () => {
    const made = await newKey({ inboxIds: [mine.inboxId, mine.inboxId] });
    expect([made.status, made.json.inboxIds]).toEqual([201, [mine.inboxId]]);
    const wrong = [
      [{ inboxIds: [world.sibling.inboxId] }, "inboxIds[0]"],
      [{ inboxIds: [mine.inboxId, "inb_none"] }, "inboxIds[1]"],
      [{ inboxIds: [mine.inboxId], senderId: null }, "inboxIds"],
      [{ inboxIds: [] }, "inboxIds"],
      [{ inboxIds: Array(MAX_KEY_INBOXES + 1).fill(mine.inboxId) }, "inboxIds"],
    ] as const;
    for (const [body, param] of wrong) {
      const { status, json } = await newKey(body);
      expect([status, json.error.param]).toEqual([422, param]);
    }
  });
});
