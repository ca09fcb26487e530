import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { MAX_POSTAL_ADDRESS_CHARS } from "../../src/core/audience/postal-address.ts";
import { RightOfWay } from "../../src/core/concurrency/right-of-way.ts";
import { loadConfig } from "../../src/config.ts";
import { MAX_SUBJECT_CHARS } from "../../src/core/messages/send-item.ts";
import { HOUR_MS, SECOND_MS } from "../../src/core/time/units.ts";
import { newId } from "../../src/core/ids.ts";
import { UNBOUND } from "../../src/core/key-bounds.ts";
import { checkBroadcast, MAX_SAMPLES } from "../../src/flows/broadcasts/check.ts";
import {
  type AskedLink,
  type LinkDeps,
  MAX_ASKED_LINKS,
  MAX_REDIRECTS,
} from "../../src/flows/broadcasts/links.ts";
import { MAX_TEST_ADDRESSES } from "../../src/flows/broadcasts/test-sends.ts";
import { BROADCAST_OUTCOMES, clickedLinks } from "../../src/store/audience/broadcast-messages.ts";
import {
  AB_DEFAULTS,
  MAX_AB_WAIT_MINUTES,
  MIN_AB_SHARE,
  placesOf,
  variantAt,
} from "../../src/core/audience/ab-test.ts";
import { sizeFindings } from "../../src/flows/broadcasts/ab-test.ts";
import { nextContacts } from "../../src/store/audience/broadcast-contacts.ts";
import { countEngagement } from "../../src/store/events/engagement.ts";
import { getMessage } from "../../src/store/messages/messages.ts";
import { findShownProject } from "../../src/store/projects/projects.ts";
import { renderTemplate, templateVariables } from "../../src/core/templates/render.ts";
import type { Sending } from "../../src/flows/accept/sending.ts";
import {
  BROADCASTS_PER_TURN,
  makeBroadcasts,
  MAX_DUE,
  MESSAGES_PER_STEP,
} from "../../src/flows/broadcasts/make-messages.ts";
import { readDue } from "../../src/flows/deliver/hold.ts";
import { renderMemory } from "../../src/flows/mime/making.ts";
import { createDownloads } from "../../src/http/pipeline/download.ts";
import { broadcastRoutes } from "../../src/http/routes/audience/broadcasts.ts";
import { contactPropertyRoutes } from "../../src/http/routes/audience/properties.ts";
import { segmentRoutes } from "../../src/http/routes/audience/segments.ts";
import { topicRoutes } from "../../src/http/routes/audience/topics.ts";
import { contactBatchRoute } from "../../src/http/routes/contact-batch.ts";
import { contactRoutes } from "../../src/http/routes/contacts.ts";
import type { Parts } from "../../src/http/routing/parts.ts";
import { log } from "../../src/log.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { systemClock } from "../../src/clock.ts";
import { getBroadcast, templateOfBroadcast } from "../../src/store/audience/broadcasts.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { asksToJoin, type TestApi, testApi } from "../support/api.ts";
import { around } from "../support/around.ts";

setDefaultTimeout(60_000);

let api: TestApi;
let deps: Sending & { rightOfWay: RightOfWay };
let key: string;
let senderId: string;
let topicId: string;
let projects = 0;

const config = loadConfig({});
/** A public host and one of the private network. All others do not exist. */
const HOSTS: Readonly<Record<string, string>> = { "shop.test": "127.0.0.1", "inside.test": "10.0.0.1" };
const links: LinkDeps["links"] = {
  clock: systemClock,
  resolver: {
    resolve: async (name, type) => {
      const ip = type === "A" ? HOSTS[name] : undefined;
      if (ip === undefined) return { status: "nodata" };
      return { status: "ok", records: [{ name, type, data: ip } as never], authentic: false };
    },
  },
  mayReach: (ip) => ip === "127.0.0.1",
  allowPrivate: false,
};
const renderer: Pick<Sending["renderer"], "variables" | "template"> = {
  variables: async (_, source) => templateVariables(source),
  template: async (_, source, data) => renderTemplate(source, data),
};

beforeAll(async () => {
  api = await testApi({
    routes: ({ db, clock }) => {
      const queue = openMemoryQueue({ clock, log: log("queue") });
      deps = {
        rightOfWay: new RightOfWay(clock),
        db,
        clock,
        queue,
        renderer,
        objects: null,
        memory: renderMemory(),
        limits: config,
        volume: { ...config, quotas: config.quotas },
        serviceDomain: "post.example",
        publicUrl: "http://post.example",
        trackingKey: new Uint8Array(32).fill(4),
        unsubscribeKey: new Uint8Array(32).fill(5),
        capturesAnyFrom: true,
      } as unknown as typeof deps;
      return [
        ...contactRoutes({
          db,
          clock,
          queue,
          handOut: createDownloads(clock),
          asksToJoin,
        }),
        contactBatchRoute({ db, quotas: config.quotas }),
        ...contactPropertyRoutes({ db }),
        ...topicRoutes({ db }),
        ...segmentRoutes({ db }),
        ...broadcastRoutes({
          ...deps,
          links,
          handOut: createDownloads(clock),
          config,
        } as unknown as Parts),
      ];
    },
  });
});
afterAll(() => api.close());
beforeEach(async () => {
  // Else each turn would go on with the broadcasts of all tests before.
  await api.db.write([
    { sql: "UPDATE broadcasts SET status = 'canceled' WHERE status <> 'draft'", args: [] },
  ]);
  const externalId = `letters-${++projects}`;
  const project = await call(
    "POST",
    "/v1/senders",
    { externalId, name: externalId, trustTier: "unlimited" },
    api.acme.wide,
  );
  senderId = project.json.id;
  key = await api.key({ accountId: api.acme.id, senderId, senderExternalId: externalId });
  topicId = (await call("POST", "/v1/topics", { name: "News" })).json.id;
});

const call = (method: string, path: string, body?: unknown, as = key) =>
  api.call(method, path, { body, key: as });
async function made(path: string, body: object) {
  const { status, json } = await call("POST", path, body);
  if (status >= 300) throw new Error(JSON.stringify(json));
  return json;
}
const LETTER = { name: "May", from: "Ana <ana@one.test>", subject: "Hello", text: "Hi {{ unsubscribeUrl }}" };
const letter = async (more: object = {}): Promise<string> =>
  (await made("/v1/broadcasts", { ...LETTER, topicId, ...more })).id;
const read = async (id: string) => (await call("GET", `/v1/broadcasts/${id}`)).json;
const step = async (id: string, verb: string) => (await call("POST", `/v1/broadcasts/${id}/${verb}`)).json;
const contacts = (emails: readonly string[]) =>
  made("/v1/contacts/batch", { contacts: emails.map((email) => ({ email })) });
const turn = (db: Db = api.db) => makeBroadcasts({ ...deps, db })();

/** The messages of a broadcast in the order in which they were made. */
function messages(id: string) {
  return api.db.all<{ id: string; email: string; subject: string; data: string | null; status: string }>(
    `SELECT m.id, r.email, m.subject, c.data, r.status FROM messages m JOIN recipients r ON r.message_id = m.id
      JOIN message_content c ON c.message_id = m.id WHERE m.template_id = ? ORDER BY m.id`,
    [id],
  );
}
const emailsOf = async (id: string) => (await messages(id)).map(({ email }) => email);
/** Ends what waits, as workers do. */
const deliverAll = () =>
  api.db.write([
    {
      sql: "UPDATE recipients SET status = 'delivered', attempts = 1, due_at = NULL, last_event_at = ? WHERE sender_id = ? AND due_at IS NOT NULL",
      args: [api.clock.now(), senderId],
    },
  ]);
const due = async (messageId: string) =>
  readDue({ ...deps, retry: { giveUpMs: HOUR_MS } as never, capture: true }, messageId, 0);

/** Fields of rows that no document names. They must not move a resource to another project, or start it. */
const foreign = (project: string) => ({
  senderId: project,
  status: "sending",
  nextAt: 1,
  id: "x",
  createdAt: 1,
});

describe("fields of a body that the document does not name", () => {
  test.each([
    ["/v1/broadcasts", { ...LETTER }, { name: "June" }],
    ["/v1/topics", { name: "Events" }, { name: "Fairs" }],
    [
      "/v1/segments",
      { name: "All", filter: { field: "subscribed", op: "eq", value: true } },
      { name: "Both" },
    ],
  ])(
    "fields that the document does not name change nothing of a row of %s",
    async (path, fields, changes) => {
      const body = path === "/v1/broadcasts" ? { ...fields, topicId } : fields;
      const first = await made(path, { ...body, ...foreign(api.acme.a.id) });
      const before = (await call("GET", `${path}/${first.id}`)).json;
      expect(before).toMatchObject(
        path === "/v1/broadcasts" ? { id: first.id, status: "draft" } : { id: first.id },
      );
      await call("PATCH", `${path}/${first.id}`, { ...changes, ...foreign(api.acme.a.id) });
      const { updatedAt: _, ...same } = before;
      expect((await call("GET", `${path}/${first.id}`)).json).toMatchObject({ ...same, ...changes });
    },
  );
});

describe("a broadcast", () => {
  test("a broadcast reaches the contacts of its segment who get the topic, and skips those who do not", async () => {
    await made("/v1/contact-properties", { name: "plan", type: "string", fallback: "free" });
    const pro = await made("/v1/segments", {
      name: "Pro",
      filter: { property: "plan", op: "eq", value: "pro" },
    });
    const people = [
      { email: "ana@example.com", firstName: "Ana", properties: { plan: "pro" } },
      { email: "ben@example.com", properties: { plan: "pro" }, subscribed: false },
      { email: "cy@example.com", properties: { plan: "pro" }, topics: { [topicId]: "unsubscribed" } },
      { email: "di@example.com", properties: { plan: "free" } },
      { email: "ed@example.com", properties: { plan: "pro" } },
    ];
    for (const person of people) await made("/v1/contacts", person);
    const subject = 'Hello {{ contact.firstName | default: "you" }}, {{ contact.properties.plan }}';
    const id = await letter({ segmentId: pro.id, subject });
    expect(await step(id, "send")).toMatchObject({
      status: "sending",
      counts: { audience: null, recipients: 0 },
    });
    await turn();
    expect(await messages(id)).toMatchObject([
      { email: "ana@example.com", subject: "Hello Ana, pro", status: "queued" },
      { email: "ed@example.com", subject: "Hello you, pro", status: "queued" },
    ]);
    expect(await read(id)).toMatchObject({
      status: "sending",
      counts: { audience: 4, recipients: 2, skipped: 2 },
    });
    await deliverAll();
    api.clock.advance(SECOND_MS);
    await turn();
    expect(await read(id)).toMatchObject({
      status: "sent",
      counts: { recipients: 2, delivered: 2, failed: 0 },
    });
  });

  test("a message stores of its contact only what the content uses", async () => {
    await made("/v1/contacts", { email: "ana@example.com", firstName: "Ana", lastName: "Lee" });
    const plain = await letter();
    const merged = await letter({ text: "Hi {{ contact.lastName }} {{ unsubscribeUrl }}" });
    for (const id of [plain, merged]) await step(id, "send");
    await turn();
    expect((await messages(plain))[0]?.data).toBeNull();
    expect(JSON.parse((await messages(merged))[0]?.data ?? "")).toEqual({ contact: { lastName: "Lee" } });
  });

  test("a step makes a limited number of messages, and no more are made while many of the project are due", async () => {
    const emails = Array.from({ length: MESSAGES_PER_STEP + 1 }, (_, at) => `c${at}@example.com`);
    await contacts(emails);
    const id = await letter();
    await step(id, "send");
    const writes: number[] = [];
    const counted: Db = {
      ...around(api.db),
      async write(statements) {
        writes.push(statements.filter(({ sql }) => sql.startsWith("INSERT INTO messages")).length);
        return api.db.write(statements);
      },
    };
    await turn(counted);
    expect(writes.filter((count) => count > 0)).toEqual([MESSAGES_PER_STEP, 1]);
    const full = await letter();
    await step(full, "send");
    const crowded: Db = {
      ...around(api.db),
      first: (sql, args) => (args?.includes(MAX_DUE) ? crowd() : api.db.first(sql, args)),
    };
    await turn(crowded);
    expect(await emailsOf(full)).toEqual([]);
  });

  test.each([
    ["that wait for room", false],
    ["of a project that is being deleted", true],
  ])("broadcasts %s are behind those of other projects", async (_, deleted) => {
    const sent = async (as: string) => {
      const topic = (await call("POST", "/v1/topics", { name: "Waiting" }, as)).json.id;
      const { id } = (await call("POST", "/v1/broadcasts", { ...LETTER, topicId: topic }, as)).json;
      expect((await call("POST", `/v1/broadcasts/${id}/send`, {}, as)).json.status).toBe("sending");
      return id;
    };
    await contacts(["a@example.com"]);
    for (let count = 0; count < BROADCASTS_PER_TURN; count++) await sent(key);
    api.clock.advance(1);
    await call("POST", "/v1/contacts", { email: "b@example.com" }, api.acme.b.key);
    const other = await sent(api.acme.b.key);
    const crowded: Db = {
      ...around(api.db),
      first: (sql, args) =>
        args?.includes(MAX_DUE) && args.includes(senderId) ? crowd() : api.db.first(sql, args),
    };
    const deleteAt = (at: number | null) =>
      api.db.write([{ sql: "UPDATE senders SET deleted_at = ? WHERE id = ?", args: [at, senderId] }]);
    if (deleted) await deleteAt(api.clock.now());
    await turn(crowded);
    await turn(crowded);
    await deleteAt(null);
    expect(await emailsOf(other)).toEqual(["b@example.com"]);
  });

  test("a subject with Liquid that shows nothing of a contact is filled in", async () => {
    await contacts(["a@example.com"]);
    const id = await letter({ subject: '{{ "June" | upcase }} news' });
    await step(id, "send");
    await turn();
    expect(await messages(id)).toMatchObject([{ subject: "JUNE news" }]);
  });

  test("a contact whose value makes the subject too long is skipped, and the others get the broadcast", async () => {
    await made("/v1/contact-properties", { name: "note", type: "string", fallback: "you" });
    const note = "n".repeat(MAX_SUBJECT_CHARS);
    await contacts(["b@example.com"]);
    const id = await letter({ subject: "Hi {{ contact.properties.note }}" });
    await step(id, "send");
    await made("/v1/contacts", { email: "a@example.com", properties: { note } });
    await turn();
    expect(await emailsOf(id)).toEqual(["b@example.com"]);
    expect(await read(id)).toMatchObject({ status: "sending", counts: { recipients: 1, skipped: 1 } });
  });

  test("ratePerHour spreads the messages evenly", async () => {
    await contacts(["a@example.com", "b@example.com", "c@example.com"]);
    const id = await letter({ ratePerHour: 1800 });
    await step(id, "send");
    const counts: number[] = [];
    for (let second = 0; second < 5; second++) {
      await turn();
      counts.push((await messages(id)).length);
      api.clock.advance(SECOND_MS);
    }
    expect(counts).toEqual([1, 1, 2, 2, 3]);
  });

  test("a scheduled broadcast begins at its time", async () => {
    await contacts(["a@example.com"]);
    const id = await letter({ scheduledAt: new Date(api.clock.now() + HOUR_MS).toISOString() });
    expect(await step(id, "send")).toMatchObject({ status: "scheduled", startedAt: null });
    await turn();
    expect(await emailsOf(id)).toEqual([]);
    api.clock.advance(HOUR_MS);
    await turn();
    expect(await emailsOf(id)).toEqual(["a@example.com"]);
  });

  test("a broadcast whose project has used up its volume waits for the next day", async () => {
    await contacts(["a@example.com", "b@example.com"]);
    await call("PATCH", `/v1/senders/${senderId}`, { dailyQuota: 1 }, api.acme.wide);
    const id = await letter();
    await step(id, "send");
    const { id: domainId } = await made("/v1/domains", { domain: "one.test" });
    await api.db.write([{ sql: "UPDATE domains SET status = 'verified' WHERE id = ?", args: [domainId] }]);
    const counting = makeBroadcasts({ ...deps, capturesAnyFrom: false });
    await counting();
    const waiting = await read(id);
    expect(waiting).toMatchObject({
      status: "sending",
      problem: { code: "daily_quota_exceeded" },
      counts: { recipients: 1 },
    });
    api.clock.advance(24 * HOUR_MS);
    await counting();
    expect(await read(id)).toMatchObject({ problem: null, counts: { recipients: 2 } });
  });

  test("a broadcast that is refused is paused with the reason, and goes on when it is resumed", async () => {
    await contacts(["a@example.com"]);
    const id = await letter();
    await step(id, "send");
    const suspend = (at: number | null) =>
      api.db.write([{ sql: "UPDATE senders SET suspended_at = ? WHERE id = ?", args: [at, senderId] }]);
    await suspend(1);
    await turn();
    expect(await read(id)).toMatchObject({ status: "paused", problem: { code: "sender_suspended" } });
    await suspend(null);
    expect(await step(id, "resume")).toMatchObject({ status: "sending", problem: null });
    await turn();
    expect(await emailsOf(id)).toEqual(["a@example.com"]);
  });
});

describe("a key", () => {
  const keyWith = (scopes: string[]) =>
    api.key({ accountId: api.acme.id, senderId, senderExternalId: `letters-${projects}`, scopes });

  test("a key without the right to send writes broadcasts, and neither sends, tests nor resumes one", async () => {
    await contacts(["a@example.com"]);
    const writing = await keyWith(["audience:read", "audience:write"]);
    const written = await call("POST", "/v1/broadcasts", { ...LETTER, topicId }, writing);
    expect(written.status).toBe(201);
    const { id } = written.json;
    const tries = async (verb: string, body: object = {}) =>
      (await call("POST", `/v1/broadcasts/${id}/${verb}`, body, writing)).json.error?.param;
    expect([await tries("send"), await tries("test", { to: ["a@one.test"] })]).toEqual([
      "emails:send",
      "emails:send",
    ]);
    await step(id, "send");
    expect(await tries("pause")).toBeUndefined();
    expect(await tries("resume")).toBe("emails:send");
    expect(await tries("cancel")).toBeUndefined();
  });

  test("once the key that sent it is revoked, a broadcast is paused, and another key resumes it", async () => {
    await contacts(["a@example.com", "b@example.com"]);
    const scheduled = await letter({ scheduledAt: new Date(api.clock.now() + HOUR_MS).toISOString() });
    const running = await letter({ ratePerHour: 3600 });
    const first = await keyWith(["audience:read", "audience:write", "emails:send"]);
    for (const id of [scheduled, running]) await call("POST", `/v1/broadcasts/${id}/send`, {}, first);
    await turn();
    expect(await emailsOf(running)).toEqual(["a@example.com"]);
    await api.db.write([
      { sql: "UPDATE api_keys SET revoked_at = 1 WHERE sender_id = ? AND scopes <> '[]'", args: [senderId] },
    ]);
    api.clock.advance(HOUR_MS);
    await turn();
    for (const id of [scheduled, running])
      expect(await read(id)).toMatchObject({ status: "paused", problem: { code: "key_revoked" } });
    expect([await emailsOf(scheduled), await emailsOf(running)]).toEqual([[], ["a@example.com"]]);
    for (const id of [scheduled, running]) await step(id, "resume");
    await turn();
    api.clock.advance(SECOND_MS);
    await turn();
    for (const id of [scheduled, running])
      expect(await emailsOf(id)).toEqual(["a@example.com", "b@example.com"]);
  });
});

describe("a check", () => {
  const check = async (id: string) => (await call("POST", `/v1/broadcasts/${id}/check`)).json;

  test("a check counts the contacts, and those who lack a value that the content shows", async () => {
    await made("/v1/contact-properties", { name: "city", type: "string" });
    await made("/v1/contact-properties", { name: "tier", type: "string", fallback: "basic" });
    await made("/v1/contacts", { email: "a@example.com", firstName: "Ana", properties: { city: "Rome" } });
    await contacts(["b@example.com", "c@example.com"]);
    const subject = 'Hi {{ contact.firstName }} {{ contact.lastName | default: "" }}';
    const text =
      "{{ contact.properties.city }} {{ contact.properties.tier }} {% if contact.lastName %}{{ contact.lastName }}{% endif %} {{ unsubscribeUrl }}";
    const id = await letter({ subject, text });
    const missing = [
      { variable: "contact.firstName", contacts: 2 },
      { variable: "contact.properties.city", contacts: 2 },
    ];
    expect(await check(id)).toMatchObject({ wouldAccept: false, contacts: 3, missing });
    expect(await step(id, "send")).toMatchObject({
      error: { type: "validation_error", param: "allowMissing" },
    });
    const sent = await call("POST", `/v1/broadcasts/${id}/send`, { allowMissing: true });
    expect(sent.json).toMatchObject({ status: "sending" });
  });

  const refusals: [what: string, change: object, param: string][] = [
    ["text without a link to unsubscribe", { text: "Hi" }, "text"],
    ["html without one, though the text has it", { html: "<p>unsubscribe by reply</p>" }, "html"],
    ["no content", { text: null }, "html"],
  ];
  test.each(refusals)(
    "a broadcast with %s is neither accepted by a check nor sent",
    async (_, change, param) => {
      const id = await letter();
      expect(await check(id)).toMatchObject({ wouldAccept: true, missing: [] });
      await call("PATCH", `/v1/broadcasts/${id}`, change);
      expect(await check(id)).toMatchObject({ wouldAccept: false, error: { param } });
      expect(await step(id, "send")).toMatchObject({ error: { param } });
    },
  );

  const ADDRESS = "Acme & Co GmbH\nMain Street 1\n1010 Vienna";
  const shownAddress: [what: string, change: object, param: string | null][] = [
    ["without the postal address of its project", {}, "text"],
    [
      "with it in other lines",
      { text: "Acme & Co GmbH, Main Street 1, 1010 VIENNA {{ unsubscribeUrl }}" },
      null,
    ],
    ["with its variable in the html", { html: "<p>{{ postalAddress }}</p>{{ unsubscribeUrl }}" }, null],
    [
      "with its variable in the text alone",
      { text: "{{postalAddress}} {{ unsubscribeUrl }}", html: "{{ unsubscribeUrl }}" },
      "html",
    ],
    ["with its variable in a comment", { html: "<!-- {{ postalAddress }} -->{{ unsubscribeUrl }}" }, "html"],
    ["with a filter on its variable", { text: "{{ postalAddress | upcase }} {{ unsubscribeUrl }}" }, "html"],
  ];
  test.each(shownAddress)(
    "of a project with a postal address, a broadcast %s is refused, or shows it",
    async (_, change, param) => {
      await contacts(["a@example.com"]);
      const project = (body: object) => call("PATCH", `/v1/senders/${senderId}`, body, api.acme.wide);
      expect((await project({ postalAddress: ADDRESS })).json.postalAddress).toBe(ADDRESS);
      const id = await letter(change);
      const refusal = param === null ? { wouldAccept: true } : { wouldAccept: false, error: { param } };
      expect(await check(id)).toMatchObject(refusal);
      expect(await step(id, "send")).toMatchObject(
        param === null ? { status: "sending" } : { error: { param } },
      );
      const { html, text } = await read(id);
      if ("html" in change && param === null)
        expect(html).toBe("<p>Acme &amp; Co GmbH<br>Main Street 1<br>1010 Vienna</p>{{ unsubscribeUrl }}");
      if (param === null) expect(text ?? "").not.toContain("postalAddress");
    },
  );

  test("a project without a postal address asks for none, and its variable is refused", async () => {
    const id = await letter({ text: "{{ postalAddress }} {{ unsubscribeUrl }}" });
    expect(await check(id)).toMatchObject({ wouldAccept: false, error: { param: "html" } });
    const faults = ["-", "{{ x }}", "a".repeat(MAX_POSTAL_ADDRESS_CHARS + 1)];
    for (const postalAddress of faults)
      expect(
        (await call("PATCH", `/v1/senders/${senderId}`, { postalAddress }, api.acme.wide)).json,
      ).toMatchObject({ error: { param: "postalAddress" } });
  });

  test("a check of links asks each once, follows redirects, and says which are broken or could not be asked", async () => {
    const asked: string[] = [];
    const answers: Readonly<Record<string, [status: number, location?: string]>> = {
      "/ok": [200],
      "/moved": [302, "/ok"],
      "/round": [301, "/round"],
      "/gone": [404],
      "/down": [503],
      "/login": [403],
    };
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => {
        const { pathname } = new URL(url);
        asked.push(pathname);
        const [status, location] = answers[pathname] ?? [500];
        return new Response("x".repeat(100_000), {
          status,
          ...(location === undefined ? {} : { headers: { location } }),
        });
      },
    });
    await made("/v1/contacts", { email: "a@example.com", firstName: "ok" });
    const at = (path: string) => `http://shop.test:${server.port}${path}`;
    const hrefs = [
      ...Object.keys(answers)
        .filter((path) => path !== "/ok")
        .map(at),
      "http://inside.test/",
      "https://nowhere.test/",
    ];
    const id = await letter({
      html: `<a href="${at("/{{ contact.firstName }}")}">x</a>${hrefs.map((href) => `<a href="${href}">x</a>`).join("")}{{ unsubscribeUrl }}`,
      text: `See ${at("/ok")}. {{ unsubscribeUrl }}`,
    });
    const { links } = (await call("POST", `/v1/broadcasts/${id}/check-links`)).json;
    const found = links.map(({ url, works, status }: AskedLink) => [url.replace(at(""), ""), works, status]);
    expect(found).toEqual([
      ["/ok", true, 200],
      ["/moved", true, 200],
      ["/round", false, 301],
      ["/gone", false, 404],
      ["/down", false, 503],
      ["/login", null, 403],
      ["http://inside.test/", null, null],
      ["https://nowhere.test/", false, null],
    ]);
    expect(asked.filter((path) => path === "/round")).toHaveLength(MAX_REDIRECTS + 1);
    expect(asked.filter((path) => path === "/ok")).toHaveLength(2);
  });

  test("links beyond the limit are named as not asked", async () => {
    const links = Array.from({ length: MAX_ASKED_LINKS + 1 }, (_, at) => `http://inside.test/${at}`);
    const id = await letter({ text: `${links.join(" ")} {{ unsubscribeUrl }}` });
    const { json } = await call("POST", `/v1/broadcasts/${id}/check-links`);
    expect(json.links).toHaveLength(MAX_ASKED_LINKS + 1);
    expect(json.links.at(-1)).toMatchObject({ works: null, problem: expect.stringContaining("not asked") });
  });

  test("contacts whose values do not fit are named by a check, and the others get the broadcast", async () => {
    await made("/v1/contact-properties", { name: "note", type: "string", fallback: "you" });
    const long = { properties: { note: "n".repeat(MAX_SUBJECT_CHARS) } };
    const id = await letter({ subject: "Hi {{ contact.properties.note }}" });
    const unfit = Array.from({ length: MAX_SAMPLES - 1 }, (_, at) => ({
      email: `l${at}@example.com`,
      ...long,
    }));
    await made("/v1/contacts/batch", { contacts: [...unfit, { email: "b@example.com" }] });
    const { wouldAccept, findings } = await check(id);
    const named = findings.filter(({ code }: { code: string }) => code === "rendering_failure");
    expect([wouldAccept, named.length]).toEqual([true, MAX_SAMPLES - 1]);
    expect(named[0].message).toContain("l0@example.com");
    const tested = await call("POST", `/v1/broadcasts/${id}/test`, { to: ["me@one.test"] });
    expect(tested.status).toBe(202);
    await step(id, "send");
    await turn();
    expect(await emailsOf(id)).toEqual(["b@example.com"]);
  });

  test("a broadcast that fits none of its contacts is refused", async () => {
    await made("/v1/contact-properties", { name: "note", type: "string", fallback: "you" });
    await made("/v1/contacts", {
      email: "a@example.com",
      properties: { note: "n".repeat(MAX_SUBJECT_CHARS) },
    });
    const id = await letter({ subject: "Hi {{ contact.properties.note }}" });
    expect(await check(id)).toMatchObject({ wouldAccept: false, error: { param: "subject" } });
  });

  test("a broadcast whose topic was deleted, or from a domain that is not verified, is refused", async () => {
    const id = await letter();
    const strict = broadcastRoutesOf({ capturesAnyFrom: false });
    expect(await strict(id)).toMatchObject({ error: { details: { code: "domain_not_verified" } } });
    await call("DELETE", `/v1/topics/${topicId}`);
    expect(await step(id, "send")).toMatchObject({ error: { param: "topicId" } });
  });

  test("a test shows the values of a contact, has no link that unsubscribes, and is no part of the results", async () => {
    await made("/v1/contacts", { email: "a@example.com", firstName: "Ana" });
    const second = await made("/v1/contacts", { email: "b@example.com", firstName: "Ben" });
    const id = await letter({ subject: "Hi {{ contact.firstName }}" });
    const to = ["me@one.test", "you@one.test"];
    const first = await call("POST", `/v1/broadcasts/${id}/test`, { to });
    expect(first.status).toBe(202);
    expect(first.json.messages.map((message: { to: string }) => message.to)).toEqual(to);
    const other = await call("POST", `/v1/broadcasts/${id}/test`, { to: [to[0]], contactId: second.id });
    const subjectOf = async (message: string) =>
      (await getMessage(api.db, senderId, message)) ?? { subject: "", unsubscribeLink: true, templateId: "" };
    expect(await subjectOf(first.json.messages[0].id)).toMatchObject({
      subject: "[Test] Hi Ana",
      unsubscribeLink: false,
      templateId: null,
    });
    expect(await subjectOf(other.json.messages[0].id)).toMatchObject({ subject: "[Test] Hi Ben" });
    expect(await messages(id)).toEqual([]);
    const eleven = Array.from({ length: MAX_TEST_ADDRESSES + 1 }, (_, at) => `t${at}@one.test`);
    expect((await call("POST", `/v1/broadcasts/${id}/test`, { to: eleven })).status).toBe(422);
  });
});

describe("results", () => {
  test("results are rates and figures by hour, and each recipient is listed with its state", async () => {
    await contacts(["a@example.com", "b@example.com", "c@example.com", "d@example.com"]);
    const id = await letter();
    expect((await call("GET", `/v1/broadcasts/${id}/results`)).json).toMatchObject({
      rates: { delivered: null },
      data: [],
    });
    await step(id, "send");
    await turn();
    const [a, b, c] = await messages(id);
    const moved = (messageId: string | undefined, status: string) =>
      api.db.write([
        {
          sql: "UPDATE recipients SET status = ?, due_at = NULL, attempts = 1, last_event_at = ? WHERE message_id = ?",
          args: [status, api.clock.now(), messageId ?? ""],
        },
      ]);
    await moved(a?.id, "delivered");
    await moved(b?.id, "delivered");
    api.clock.advance(HOUR_MS);
    await moved(c?.id, "bounced");
    await happens(a?.id ?? "", "open");
    await happens(a?.id ?? "", "open");
    await happens(b?.id ?? "", "open", true);
    const results = await call("GET", `/v1/broadcasts/${id}/results`);
    expect(results.json.rates).toEqual({
      delivered: 0.5,
      bounced: 0.25,
      complained: 0,
      opened: 0.5,
      clicked: 0,
      unsubscribed: 0,
    });
    expect(results.json.data).toMatchObject([
      { delivered: 2, opened: 0 },
      { delivered: 0, bounced: 1, opened: 1 },
    ]);
    const listed = await call("GET", `/v1/broadcasts/${id}/recipients?limit=2`);
    expect(listed.json.data).toMatchObject([
      { email: "d@example.com", status: "queued" },
      { email: "c@example.com", status: "bounced" },
    ]);
    const rest = await call(
      "GET",
      `/v1/broadcasts/${id}/recipients?limit=2&cursor=${listed.json.nextCursor}`,
    );
    expect(rest.json.data).toMatchObject([
      { email: "b@example.com", opened: false },
      { email: "a@example.com", opened: true },
    ]);
    await happens(b?.id ?? "", "click");
    await happens(b?.id ?? "", "unsubscribed");
    const outcomes: Record<string, string> = {};
    for (const outcome of BROADCAST_OUTCOMES) {
      const { json } = await call("GET", `/v1/broadcasts/${id}/recipients?outcome=${outcome}`);
      outcomes[outcome] = json.data.map(({ email }: { email: string }) => email[0]).join("");
    }
    expect(outcomes).toEqual({
      sent: "cba",
      delivered: "ba",
      bounced: "c",
      complained: "",
      failed: "",
      opened: "a",
      clicked: "b",
      unsubscribed: "b",
    });
    expect(await clickedLinks(api.db, senderId, [a?.id ?? "", b?.id ?? ""])).toEqual([
      { id: b?.id ?? "", url: "https://one.test/", clicks: 1 },
    ]);
  });
});

describe("a test of two subjects", () => {
  const AB = { subject: "Other", share: 0.5, waitMinutes: 60 };
  /** So many that each part has some of them. */
  const EMAILS = Array.from({ length: 80 }, (_, at) => `p${at}@example.com`);

  const results = async (id: string) => (await call("GET", `/v1/broadcasts/${id}/results`)).json;
  const bySubject = async (id: string, subject: string) =>
    (await messages(id)).filter((message) => message.subject === subject);
  const turns = async (count: number) => {
    for (let at = 0; at < count; at++) {
      await turn();
      await deliverAll();
      api.clock.advance(SECOND_MS);
    }
  };

  /** Sends a broadcast up to the wait for its decision. */
  async function waiting(more: object = {}): Promise<string> {
    const id = await letter({ abTest: { ...AB, ...more } });
    await step(id, "send");
    await turns(2);
    return id;
  }

  test("half of a test gets each subject, and after the wait the rest gets the better one", async () => {
    await contacts(EMAILS);
    const id = await waiting();
    const [a, b] = [await bySubject(id, "Hello"), await bySubject(id, "Other")];
    expect([a.length > 5, b.length > 5, a.length + b.length < 65]).toEqual([true, true, true]);
    const decideAt = new Date(api.clock.now() - SECOND_MS + HOUR_MS).toISOString();
    expect(await read(id)).toMatchObject({ status: "sending", abTest: { ...AB, decideAt, decision: null } });
    for (const { id: message } of b) await happens(message, "open");
    await happens(b[0]?.id ?? "", "open");
    for (const { id: message } of a) await happens(message, "open", true);
    expect((await results(id)).abTest).toMatchObject({
      a: { subject: "Hello", recipients: a.length, delivered: a.length, opened: { count: 0, rate: 0 } },
      b: { subject: "Other", recipients: b.length, opened: { count: b.length, rate: 1, high: 1 } },
      better: "b",
      difference: -1,
    });
    await turns(1);
    expect(await messages(id)).toHaveLength(a.length + b.length);
    api.clock.advance(HOUR_MS);
    await turns(4);
    expect((await emailsOf(id)).toSorted()).toEqual(EMAILS.toSorted());
    expect(await bySubject(id, "Other")).toHaveLength(EMAILS.length - a.length);
    const sent = await read(id);
    expect(sent).toMatchObject({
      status: "sent",
      counts: { recipients: 80, skipped: 0, delivered: 80 },
      abTest: { decision: { winner: "b" } },
    });
    expect(sent.abTest.decision.why).toMatch(
      /^A was opened by 0.0 % ± .* B by 100.0 % ± .* beyond the margin/,
    );
    expect((await results(id)).abTest).toMatchObject({ b: { recipients: b.length } });
    // The test that was read is accepted for a new draft, which starts undecided.
    expect(await read(await letter({ abTest: sent.abTest }))).toMatchObject({
      abTest: { ...AB, decideAt: null, decision: null },
    });
    await api.db.write([{ sql: "DELETE FROM messages WHERE template_id = ?", args: [id] }]);
    expect((await call("DELETE", `/v1/broadcasts/${id}`)).status).toBe(204);
    expect(await api.db.all("SELECT 1 FROM broadcast_variant_figures WHERE broadcast_id = ?", [id])).toEqual(
      [],
    );
  });

  test("without a clear difference the rest gets the subject of the broadcast", async () => {
    await contacts(EMAILS.slice(0, 40));
    const id = await waiting();
    const tested = await messages(id);
    const b = tested.filter(({ subject }) => subject === "Other");
    await happens(b[0]?.id ?? "", "open");
    api.clock.advance(HOUR_MS);
    await turns(4);
    expect(await messages(id)).toHaveLength(40);
    expect(await bySubject(id, "Other")).toHaveLength(b.length);
    const { status, abTest } = await read(id);
    expect([status, abTest.decision.winner]).toEqual(["sent", "undecided"]);
    expect(abTest.decision.why).toContain("within the margin of error");
  });

  test("a test of all contacts ends with its last message, and its results still say who is better", async () => {
    await contacts(EMAILS.slice(0, 40));
    const id = await waiting({ share: 1, by: "clicks" });
    expect(await read(id)).toMatchObject({ status: "sent", abTest: { decideAt: null, decision: null } });
    const [a, b] = [await bySubject(id, "Hello"), await bySubject(id, "Other")];
    expect(a.length + b.length).toBe(40);
    for (const { id: message } of a) await happens(message, "click");
    expect((await results(id)).abTest).toMatchObject({ better: "a", a: { clicked: { rate: 1 } } });
  });

  test("a pause does not move the decision, and a broadcast that is canceled before it sends no more", async () => {
    await contacts(EMAILS.slice(0, 40));
    const id = await waiting();
    const made = await emailsOf(id);
    const { decideAt } = (await read(id)).abTest;
    await step(id, "pause");
    await step(id, "resume");
    await turns(2);
    expect((await read(id)).abTest).toMatchObject({ decideAt, decision: null });
    expect(await emailsOf(id)).toEqual(made);
    await step(id, "pause");
    api.clock.advance(2 * HOUR_MS);
    await turns(1);
    expect(await read(id)).toMatchObject({ status: "paused", abTest: { decision: null } });
    expect(await step(id, "cancel")).toMatchObject({ status: "canceled" });
    await turns(1);
    expect(await emailsOf(id)).toEqual(made);
  });

  test("the contacts of a test are chosen by chance, and others in each broadcast", async () => {
    for (let batch = 0; batch < 4; batch++)
      await contacts(Array.from({ length: 100 }, (_, at) => `m${batch}-${at}@example.com`));
    const chosen = async (broadcastId: string) => {
      const places = placesOf(broadcastId, {
        ...AB,
        share: 0.2,
        by: "opens",
        decideAt: null,
        decision: null,
      });
      const range = { senderId, filter: null, after: "", below: "con~", places };
      const found = (await nextContacts(api.db, range, 400)).contacts;
      return {
        a: found.filter(({ place }) => variantAt(places, place) === "a").map(({ id }) => id),
        all: found.map(({ id }) => id),
      };
    };
    const [one, other] = [await chosen("bro_1"), await chosen("bro_2")];
    // Five standard deviations of the chance.
    for (const { a, all } of [one, other]) {
      expect(Math.abs(all.length - 80)).toBeLessThan(40);
      expect(Math.abs(a.length - all.length / 2)).toBeLessThan(27);
    }
    expect(Math.abs(one.all.filter((id) => other.all.includes(id)).length - 16)).toBeLessThan(20);
  });

  const faults: [what: string, abTest: object, param: string][] = [
    ["a share below the least", { ...AB, share: MIN_AB_SHARE - 0.001 }, "abTest.share"],
    ["a share above all", { ...AB, share: 1.001 }, "abTest.share"],
    ["no wait", { ...AB, waitMinutes: 0 }, "abTest.waitMinutes"],
    ["a wait beyond the longest", { ...AB, waitMinutes: MAX_AB_WAIT_MINUTES + 1 }, "abTest.waitMinutes"],
    ["an unknown measure", { ...AB, by: "replies" }, "abTest.by"],
    ["a blank subject", { ...AB, subject: " " }, "abTest.subject"],
    ["a subject that is no Liquid", { ...AB, subject: "{{ contact" }, "abTest.subject"],
    ["a subject that is too long", { ...AB, subject: "x".repeat(MAX_SUBJECT_CHARS + 1) }, "abTest.subject"],
  ];
  test.each(faults)("a test with %s is refused", async (_, abTest, param) => {
    const { status, json } = await call("POST", "/v1/broadcasts", { ...LETTER, topicId, abTest });
    expect([status, json.error.param]).toEqual([422, param]);
  });

  test("a check refuses equal subjects, counts what contacts lack for both, and warns about what no test can show", async () => {
    await made("/v1/contacts", { email: "a@example.com", firstName: "Ana" });
    await contacts(["b@example.com"]);
    const checked = async (id: string) => (await call("POST", `/v1/broadcasts/${id}/check`)).json;
    const same = await letter({ abTest: { subject: "Hello " } });
    expect((await read(same)).abTest).toEqual({
      subject: "Hello ",
      ...AB_DEFAULTS,
      decideAt: null,
      decision: null,
    });
    expect(await checked(same)).toMatchObject({ wouldAccept: false, error: { param: "abTest.subject" } });
    expect(await step(same, "send")).toMatchObject({ error: { param: "abTest.subject" } });
    await call("PATCH", `/v1/broadcasts/${same}`, {
      abTest: { subject: "Hi {{ contact.firstName }}", by: "clicks" },
    });
    const { missing, findings } = await checked(same);
    expect(missing).toEqual([{ variable: "contact.firstName", contacts: 1 }]);
    expect(findings.slice(0, 2)).toMatchObject([
      { code: "ab_test_not_tracked", message: "No clicks will be counted, so neither subject can win." },
      { code: "ab_test_too_small", message: expect.stringContaining("each needs 2518") },
    ]);
    const html = '<a href="https://one.test/">News</a> <a href="{{ unsubscribeUrl }}">Leave</a>';
    await call("PATCH", `/v1/broadcasts/${same}`, { html });
    const codes = async () => (await checked(same)).findings.map(({ code }: { code: string }) => code);
    expect(await codes()).not.toContain("ab_test_not_tracked");
    await call("PATCH", `/v1/broadcasts/${same}`, { abTest: null });
    expect(await codes()).not.toContain("ab_test_too_small");
  });

  test("a warning about the size of a test says how large a share is enough", () => {
    const test = { ...AB, share: 0.2, by: "opens", decideAt: null, decision: null } as const;
    expect(sizeFindings(test, 27_540)).toEqual([]);
    expect(sizeFindings(test, 10_000)).toMatchObject([{ fix: "Set `abTest.share` to 0.28 or more." }]);
    expect(sizeFindings(test, 2000)[0]?.fix).toStartWith("The broadcast needs 2754 contacts for that.");
  });

  test("a test message of a broadcast goes to each address with both subjects", async () => {
    const id = await letter({ abTest: AB });
    const { json } = await call("POST", `/v1/broadcasts/${id}/test`, { to: ["me@one.test", "you@one.test"] });
    const sent = json.messages.map(async ({ id: message, to }: { id: string; to: string }) => [
      to,
      (await getMessage(api.db, senderId, message))?.subject,
    ]);
    expect(await Promise.all(sent)).toEqual([
      ["me@one.test", "[Test] Hello"],
      ["me@one.test", "[Test] Other"],
      ["you@one.test", "[Test] Hello"],
      ["you@one.test", "[Test] Other"],
    ]);
  });

  test.each(["refused", "unheard"] as const)(
    "whichever write of a test is %s, each contact gets one subject once, and it is decided once",
    async (way) => {
      const few = EMAILS.slice(0, 8);
      await contacts(few);
      let reached = true;
      for (let at = 0; reached; at++) {
        const id = await letter({ abTest: { ...AB, waitMinutes: 1 } });
        await step(id, "send");
        let taken = 0;
        reached = false;
        const failing: Db = {
          ...around(api.db),
          async write(statements) {
            if (taken++ !== at) return api.db.write(statements);
            reached = true;
            if (way === "unheard") await api.db.write(statements);
            throw new Error("the database is gone");
          },
        };
        for (let turns = 0; turns < 8; turns++) {
          // Two processes, of which one has the trouble.
          await Promise.all([turn(failing).catch(() => undefined), turn()]);
          await deliverAll();
          api.clock.advance(40 * SECOND_MS);
        }
        const { status, counts, abTest } = await read(id);
        expect((await emailsOf(id)).toSorted()).toEqual(few.toSorted());
        expect([status, counts.recipients, abTest.decision.winner]).toEqual(["sent", 8, "undecided"]);
        const { a, b } = (await results(id)).abTest;
        expect([a.delivered, b.delivered]).toEqual([a.recipients, b.recipients]);
        expect(await bySubject(id, "Other")).toHaveLength(b.recipients);
      }
    },
  );
});

describe("pausing and canceling", () => {
  test("a paused broadcast holds its waiting messages, and they are due once it is resumed", async () => {
    await contacts(["a@example.com"]);
    const id = await letter();
    await step(id, "send");
    await turn();
    const [message] = await messages(id);
    await step(id, "pause");
    expect(await due(message?.id ?? "")).toBeNull();
    // However long the pause is.
    api.clock.advance(3 * HOUR_MS);
    expect(await due(message?.id ?? "")).toBeNull();
    await step(id, "resume");
    expect(await due(message?.id ?? "")).toMatchObject({ refusal: null });
  });

  test("a scheduled broadcast that a restore has paused waits for its time again once it is resumed", async () => {
    await contacts(["a@example.com"]);
    const id = await letter({ scheduledAt: new Date(api.clock.now() + HOUR_MS).toISOString() });
    await step(id, "send");
    await api.db.write([{ sql: "UPDATE broadcasts SET status = 'paused' WHERE id = ?", args: [id] }]);
    expect(await step(id, "resume")).toMatchObject({ status: "scheduled", problem: null });
    await turn();
    expect(await emailsOf(id)).toEqual([]);
    api.clock.advance(HOUR_MS);
    await turn();
    expect(await emailsOf(id)).toEqual(["a@example.com"]);
  });

  test("a canceled broadcast makes no more messages, and refuses those that wait", async () => {
    await contacts(["a@example.com", "b@example.com"]);
    const id = await letter({ ratePerHour: 3600 });
    await step(id, "send");
    await turn();
    await step(id, "pause");
    const [message] = await messages(id);
    expect(await due(message?.id ?? "")).toBeNull();
    expect(await step(id, "cancel")).toMatchObject({ status: "canceled" });
    expect(await due(message?.id ?? "")).toMatchObject({ refusal: "canceled" });
    api.clock.advance(SECOND_MS);
    await turn();
    expect(await emailsOf(id)).toEqual(["a@example.com"]);
  });

  test("a broadcast is deleted once none of its messages, which show its content, is left", async () => {
    await contacts(["a@example.com", "b@example.com"]);
    const id = await letter({ ratePerHour: 3600 });
    await step(id, "send");
    await turn();
    await step(id, "cancel");
    await deliverAll();
    expect((await call("DELETE", `/v1/broadcasts/${id}`)).json).toMatchObject({
      error: { code: "invalid_state" },
    });
    const [message] = await messages(id);
    expect(await templateOfBroadcast(api.db, senderId, id)).toMatchObject({ text: LETTER.text });
    await api.db.write([{ sql: "DELETE FROM messages WHERE id = ?", args: [message?.id ?? ""] }]);
    expect((await call("DELETE", `/v1/broadcasts/${id}`)).status).toBe(204);
    const left =
      "SELECT 1 FROM broadcast_figures WHERE broadcast_id = ? UNION ALL SELECT 1 FROM broadcast_bodies WHERE broadcast_id = ?";
    expect(await api.db.all(left, [id, id])).toEqual([]);
  });

  test("a scheduled broadcast can be canceled and deleted before its time", async () => {
    const id = await letter({ scheduledAt: new Date(api.clock.now() + HOUR_MS).toISOString() });
    await step(id, "send");
    await step(id, "cancel");
    expect((await call("DELETE", `/v1/broadcasts/${id}`)).status).toBe(204);
  });

  const refused: [verb: string, status: string][] = [
    ["pause", "draft"],
    ["resume", "sending"],
    ["cancel", "draft"],
    ["send", "sending"],
  ];
  test.each(refused)("%s is refused with 409 for a broadcast that is %s", async (verb, status) => {
    const id = await letter();
    if (status === "sending") await step(id, "send");
    expect(await step(id, verb)).toMatchObject({ error: { code: "invalid_state" } });
  });
});

describe("a draft", () => {
  test("a draft can be changed and deleted, and a sent broadcast cannot", async () => {
    const id = await letter();
    const changed = await call("PATCH", `/v1/broadcasts/${id}`, { subject: "New", replyTo: "re@one.test" });
    expect(changed.json).toMatchObject({
      subject: "New",
      replyTo: [{ email: "re@one.test" }],
      text: LETTER.text,
    });
    await step(id, "send");
    expect((await call("PATCH", `/v1/broadcasts/${id}`, { subject: "x" })).status).toBe(409);
    expect((await call("DELETE", `/v1/broadcasts/${id}`)).status).toBe(409);
    const other = await letter();
    expect((await call("DELETE", `/v1/broadcasts/${other}`)).status).toBe(204);
    expect((await call("GET", "/v1/broadcasts")).json.data).toMatchObject([{ id }]);
  });

  test("of two changes at the same time none is lost without a refusal", async () => {
    const id = await letter();
    const changes = [{ html: "<p>New</p>" }, { subject: "New" }];
    const answers = await Promise.all(changes.map((change) => call("PATCH", `/v1/broadcasts/${id}`, change)));
    const taken = changes.filter((_, at) => answers[at]?.status === 200);
    expect(taken.length).toBeGreaterThan(0);
    expect(await read(id)).toMatchObject(Object.assign({}, ...taken));
  });

  const faults: [what: string, body: object, param: string][] = [
    ["an unknown topic", { topicId: "top_x" }, "topicId"],
    ["an unknown segment", { segmentId: "seg_x" }, "segmentId"],
    ["an unknown template", { templateId: "none" }, "templateId"],
    ["a sender that is no address", { from: "ana" }, "from"],
    ["Liquid that does not parse", { text: "{% if %}" }, "text"],
    ["a time that is none", { scheduledAt: "soon" }, "scheduledAt"],
  ];
  test.each(faults)("%s is refused", async (_, body, param) => {
    const { status, json } = await call("POST", "/v1/broadcasts", { ...LETTER, topicId, ...body });
    expect([status, json.error.param]).toEqual([422, param]);
  });

  test("a broadcast without a subject or body is refused when it is sent", async () => {
    const id = await letter({ subject: null });
    expect(await step(id, "send")).toMatchObject({ error: { param: "subject" } });
    await call("PATCH", `/v1/broadcasts/${id}`, { subject: "x", text: null });
    expect(await step(id, "send")).toMatchObject({ error: { param: "html" } });
  });

  test("a key with bounds cannot send a broadcast", async () => {
    const id = await letter();
    const bounded = await api.key({
      accountId: api.acme.id,
      senderId,
      senderExternalId: `letters-${projects}`,
      allowRecipients: ["@example.com"],
    } as never);
    expect((await call("POST", `/v1/broadcasts/${id}/send`, undefined, bounded)).status).toBe(403);
  });
});

describe("a crash", () => {
  const EMAILS = ["a@example.com", "b@example.com", "c@example.com"];

  /** Runs turns until the broadcast is over. */
  async function finish(id: string): Promise<void> {
    for (let turns = 0; turns < 20; turns++) {
      await turn();
      await deliverAll();
      api.clock.advance(6 * SECOND_MS);
      if ((await getBroadcast(api.db, senderId, id))?.status === "sent") return;
    }
    throw new Error(JSON.stringify(await read(id)));
  }

  test.each(["refused", "unheard"] as const)(
    "whichever step at the database is %s, no contact is skipped or gets it twice",
    async (way) => {
      await contacts(EMAILS);
      let reached = true;
      for (let at = 0; reached; at++) {
        const id = await letter({ ratePerHour: 7200 });
        await step(id, "send");
        let taken = 0;
        reached = false;
        const meet = async <Result>(run: () => Promise<Result>, isWrite = false): Promise<Result> => {
          const isMet = (way === "refused" || isWrite) && taken++ === at;
          if (isMet) reached = true;
          if (isMet && way === "refused") throw new Error("the database is gone");
          const result = await run();
          if (isMet) throw new Error("the reply was lost");
          return result;
        };
        const failing: Db = {
          ...around(api.db),
          all: (sql, args) => meet(() => api.db.all(sql, args)),
          first: (sql, args) => meet(() => api.db.first(sql, args)),
          readConfig: (query, args) => meet(() => api.db.readConfig(query, args)),
          write: (statements) => meet(() => api.db.write(statements), true),
        };
        for (let turns = 0; turns < 2; turns++) {
          await turn(failing).catch(() => undefined);
          api.clock.advance(SECOND_MS);
        }
        await finish(id);
        expect(await emailsOf(id)).toEqual(EMAILS);
        expect(await read(id)).toMatchObject({ counts: { recipients: 3, skipped: 0, delivered: 3 } });
      }
    },
  );

  test("two processes that make messages at the same time make each once", async () => {
    await contacts(EMAILS);
    const id = await letter({ ratePerHour: 7200 });
    await step(id, "send");
    for (let second = 0; second < 4; second++) {
      await Promise.all([turn(), turn()]);
      api.clock.advance(SECOND_MS);
    }
    expect(await emailsOf(id)).toEqual(EMAILS);
  });
});

/** Returns a check of a broadcast by a service with other settings. */
function broadcastRoutesOf(settings: Partial<Sending>) {
  return async (id: string) => {
    const project = await findShownProject(api.db, senderId);
    if (project === null) throw new Error("no project");
    const by = { keyId: null, bounds: UNBOUND };
    return checkBroadcast({ ...deps, ...settings }, { project, by, now: api.clock.now() }, id);
  };
}

/** Counts an event of a message, as the routes of links do. */
function happens(messageId: string, type: "open" | "click" | "unsubscribed", machine = false) {
  const engaged = type === "unsubscribed" || machine ? null : type === "open" ? "opens" : "clicks";
  return api.db.write([
    {
      sql: `INSERT INTO events (message_id, id, sender_id, type, email, data, created_at)
        SELECT message_id, ?, sender_id, ?, email, ?, ? FROM recipients WHERE message_id = ?`,
      args: [
        newId("evt", 1),
        type,
        JSON.stringify({ [type]: { machine, url: "https://one.test/" } }),
        api.clock.now(),
        messageId,
      ],
    },
    ...(engaged === null ? [] : [countEngagement(messageId, 0, engaged)]),
  ]);
}

async function crowd<Row>(): Promise<Row> {
  return { n: MAX_DUE } as Row;
}
