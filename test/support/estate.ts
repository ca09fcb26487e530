import { newId } from "../../src/core/ids.ts";
import { openSession } from "../../src/store/projects/member-sessions.ts";
import { saveLane } from "../../src/store/installation/lanes.ts";
import { sealUrl } from "../../src/core/crypto/tracking-token.ts";
import { recipientToken } from "../../src/flows/mime/recipient-token.ts";
import { joinUrl } from "../../src/flows/audience/double-opt-in.ts";
import { forwardUrl } from "../../src/flows/rules/forward-addresses.ts";
import { askForwardAddress } from "../../src/store/rules/forward-addresses.ts";
import { approvalUrl } from "../../src/flows/notices/approval-link.ts";
import { openNotices, raiseNotice } from "../../src/store/notices/notices.ts";
import { unsubscribeUrl } from "../../src/flows/mime/unsubscribe.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { verifiedDomain } from "./service.ts";
import type { Operation } from "./openapi-document.ts";
import type { RawAnswer, Tenant, World } from "./tenants.ts";

/** A project's resource: the name that paths use for it. */
export interface Made {
  id: string;
  /** Other names that it accepts, such as a slug. */
  aliases?: readonly string[];
}

/** The owner of a new resource, and the ids of its parents. */
export interface Making {
  world: World;
  tenant: Tenant;
  /** Ids of the path segments before it, outermost first. */
  above: readonly string[];
}

const HOUR_MS = 3_600_000;

function soon(): string {
  return new Date(Date.now() + HOUR_MS).toISOString();
}

/** Tables of which a project has a fixed number of rows, by their collection. A deleted row of some counts for a minute. */
const BOUNDED: Readonly<Record<string, string>> = {
  "/v1/contact-properties": "contact_properties",
  "/v1/topics": "topics",
  "/v1/segments": "segments",
  "/v1/broadcasts": "broadcasts",
  "/v1/rules": "rules",
  "/v1/drafts": "drafts",
  "/v1/forward-addresses": "forward_addresses",
};

/**
 * Posts as the tenant. If its project has as many rows as it may have, the oldest one goes first, but never the topic of its letters.
 * Throws if the service refuses.
 */
async function post({ world, tenant }: Making, path: string, body?: unknown): Promise<RawAnswer["json"]> {
  const ask = () => world.call("POST", path, { key: tenant.key }, body);
  let answer = await ask();
  const table = BOUNDED[path];
  if (answer.json?.error?.code === "quota_exceeded" && table !== undefined) {
    const sql = `DELETE FROM ${table} WHERE id = (SELECT MIN(id) FROM ${table} WHERE sender_id = ? AND id <> ?)`;
    await world.service.app.db.write([{ sql, args: [tenant.senderId, tenant.topicId] }]);
    answer = await ask();
  }
  if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return answer.json;
}

/** Names of the domains that were made, by id: a record's name is at or below its domain. */
export const domainNames = new Map<string, string>();
/** External ids of projects that were made, by their id. */
const externalIds = new Map<string, string>();

/** How to make a new resource of each collection. If a collection is missing here, the test of its path fails. */
export const MAKERS: Readonly<Record<string, (making: Making) => Promise<Made>>> = {
  "/v1/emails": (making) => post(making, "/v1/emails", sendItem(making)),
  async "/v1/emails/{}/attachments"({ world, tenant, above: [message] }) {
    const { json } = await world.call("GET", `/v1/emails/${message}`, { key: tenant.key });
    return { id: json.attachments[0].id };
  },
  /** No tenant owns a lane: a reply makes it. */
  async "/v1/lanes"({ world }) {
    const name = `mx${world.next()}.example.net`;
    const row = { name, state: "{}", version: 1, changedBy: "a worker", changedAt: Date.now(), rank: 0 };
    await world.service.app.db.write([saveLane(row)]);
    return { id: name };
  },
  "/v1/imports": ({ world, tenant }) => importedFile(world, tenant),
  "/v1/erasures": (making) => post(making, "/v1/erasures", contactBody(making)),
  "/v1/inboxes": (making) => post(making, "/v1/inboxes", inboxBody(making)),
  "/v1/rules": (making) => post(making, "/v1/rules", RULE),
  "/v1/forward-addresses": forwardAddress,
  "/v1/inbound/senders": (making) => post(making, "/v1/inbound/senders", listedBody(making)),
  "/v1/inboxes/{}/senders": (making) =>
    post(making, `/v1/inboxes/${making.above[0]}/senders`, listedBody(making)),
  async "/v1/threads"(making) {
    const simulated = await post(making, "/v1/inbound/simulate", simulateBody(making));
    return { id: simulated.threadId };
  },
  async "/v1/threads/{}/notes"(making) {
    return post(making, `/v1/threads/${making.above[0]}/notes`, { text: `${making.tenant.name} note` });
  },
  "/v1/drafts": (making) => post(making, "/v1/drafts", draft(making)),
  async "/v1/domains"({ world, tenant }) {
    const name = `${tenant.name}-${world.next()}.example.net`;
    const id = await verifiedDomain(world.service, name, tenant.key);
    domainNames.set(id, name);
    await world.call("PATCH", `/v1/domains/${id}`, { key: tenant.key }, { delegated: true });
    return { id };
  },
  "/v1/domains/{}/records": (making) =>
    post(making, `/v1/domains/${making.above[0]}/records`, recordBody(making)),
  "/v1/webhooks": (making) => post(making, "/v1/webhooks", webhookBody(making)),
  "/v1/webhooks/{}/deliveries": (making) => post(making, `/v1/webhooks/${making.above[0]}/test`),
  "/v1/api-keys": (making) =>
    post(making, "/v1/api-keys", {
      name: making.tenant.name,
      senderId: making.tenant.senderId,
      // A key limited to scopes revokes only keys within its own.
      scopes: ["api_keys:write"],
    }),
  async "/v1/routes"({ world, tenant }) {
    const relay = { kind: "relay", relayUrl: "smtp://relay.example.com:587" };
    const body = { name: `${tenant.name} ${world.next()}`, ...relay };
    return (await world.call("POST", "/v1/routes", { key: tenant.wide }, body)).json;
  },
  async "/v1/senders"({ world, tenant }) {
    const name = `${tenant.name} ${world.next()}`;
    const { json } = await world.call("POST", "/v1/senders", { key: tenant.wide }, { name });
    externalIds.set(json.id, json.externalId);
    return json;
  },
  "/v1/members": invitedMember,
  "/v1/members/{}/sessions": ({ world, above: [memberId = ""] }) => memberSession(world, memberId),
  async "/v1/templates"(making) {
    const made = await post(making, "/v1/templates", templateBody(making));
    return { id: made.id, aliases: [made.slug] };
  },
  "/v1/contacts": (making) => post(making, "/v1/contacts", contactBody(making)),
  "/v1/contact-properties": (making) => post(making, "/v1/contact-properties", propertyBody(making)),
  "/v1/topics": (making) => post(making, "/v1/topics", topicBody(making)),
  "/v1/segments": (making) => post(making, "/v1/segments", segmentBody(making)),
  "/v1/broadcasts": (making) => post(making, "/v1/broadcasts", broadcastBody(making)),
  "/v1/suppressions": (making) => post(making, "/v1/suppressions", contactBody(making)),
  async "/u"(making) {
    const { id } = await post(making, "/v1/emails", { ...sendItem(making), unsubscribeLink: true });
    const { unsubscribe: unsubscribeKey } = openKeys(null, making.world.service.folder);
    return { id: unsubscribeUrl({ publicUrl: "", unsubscribeKey }, id, 0).slice("/u/".length) };
  },
  async "/v1/notices"({ world, tenant }) {
    const at = Date.now();
    const id = newId("ntc", at);
    const about = { senderId: tenant.senderId, subjectId: id, subject: tenant.name, detail: null };
    await world.service.app.db.write([raiseNotice({ ...about, id, kind: "rule_disabled", at })]);
    return { id };
  },
  async "/a"({ world, tenant }) {
    const { db } = world.service.app;
    const { secret } = await post({ world, tenant, above: [] }, "/v1/api-keys", {
      name: "agent",
      senderId: tenant.senderId,
      approval: true,
    });
    const { json } = await world.call(
      "POST",
      "/v1/emails",
      { key: secret },
      sendItem({ world, tenant, above: [] }),
    );
    const account = await db.first<{ id: string; email: string }>(
      "SELECT a.id, a.owner_email AS email FROM accounts a JOIN senders s ON s.account_id = a.id WHERE s.id = ?",
      [tenant.senderId],
    );
    const [notice] = await openNotices(db, "approval_waiting", 1000).then((all) =>
      all.filter(({ subjectId }) => subjectId === json.id),
    );
    if (account === null || notice === undefined) throw new Error("no notice of the approval");
    const { file: linkKey } = openKeys(null, world.service.folder);
    return { id: approvalUrl({ publicUrl: "", linkKey }, account.email, notice).slice("/a/".length) };
  },
  async "/f"(making) {
    const { file: linkKey } = openKeys(null, making.world.service.folder);
    const { id } = await forwardAddress(making);
    const link = { senderId: making.tenant.senderId, id };
    return { id: forwardUrl({ publicUrl: "", linkKey }, link, Date.now() + HOUR_MS).slice("/f/".length) };
  },
  async "/j"(making) {
    const { world, tenant } = making;
    const { file: linkKey } = openKeys(null, world.service.folder);
    const { email } = await post(making, "/v1/contacts", {
      ...contactBody(making),
      topics: { [tenant.topicId]: "subscribed" },
    });
    const link = { senderId: tenant.senderId, email, topicIds: [tenant.topicId] };
    return { id: joinUrl({ publicUrl: "", linkKey }, link, Date.now() + HOUR_MS).slice("/j/".length) };
  },
  async "/o"(making) {
    return { id: (await trackedRecipient(making)).token };
  },
  async "/c"(making) {
    const { key, token } = await trackedRecipient(making);
    return { id: `${token}.${sealUrl(key, token, "https://a.test/")}` };
  },
};

const RULE = { name: "Lists", when: { header: { name: "List-Id" } }, then: { archive: true } };

/** Makes a forward address without the mail to its owner, because a project may send only a few of those. */
async function forwardAddress({ world, tenant }: Making): Promise<Made> {
  const now = Date.now();
  const id = newId("fwd", now);
  const email = `forward-${world.next()}@${tenant.name}.example.com`;
  const row = { id, senderId: tenant.senderId, email, emailKey: email, confirmedAt: null };
  const times = { askedAt: 0, mails: 0, removedAt: null, createdAt: now };
  await world.service.app.db.write(askForwardAddress({ ...row, ...times }, null, now));
  return { id };
}

/** Signs a member in. */
async function memberSession({ service }: World, memberId: string): Promise<Made> {
  const now = Date.now();
  const used = { ip: "192.0.2.1", userAgent: "test", lastUsedAt: now, expiresAt: now + HOUR_MS };
  const session = { id: newId("ses", now), memberId, ...used, createdAt: now };
  await openSession(service.app.db, session, 1);
  return session;
}

/** Its address has no tenant's name, because the first project of the account shows it in capture mode. */
function memberBody({ world }: Pick<Making, "world">) {
  return { email: `person-${world.next()}@example.com`, role: "viewer" };
}

async function invitedMember({ world, tenant }: Making): Promise<Made> {
  const body = memberBody({ world });
  return (await world.call("POST", "/v1/members", { key: tenant.wide }, body)).json;
}

async function signedInMember(making: Making): Promise<Made> {
  const made = await invitedMember(making);
  await memberSession(making.world, made.id);
  return made;
}

/** Makes a message of a key whose sends wait for another key's approval. */
async function awaitingMessage(making: Making): Promise<Made> {
  const { world, tenant } = making;
  const wanted = { name: "agent", senderId: tenant.senderId, approval: true };
  const { secret } = await post(making, "/v1/api-keys", wanted);
  const sent = await world.call("POST", "/v1/emails", { key: secret }, sendItem(making));
  return sent.json;
}

/** Makes a message that capture mode has kept. */
async function capturedMessage(making: Making): Promise<Made> {
  const made = await post(making, "/v1/emails", sendItem(making));
  const sql =
    "UPDATE recipients SET status = 'delivered', mx = 'capture', due_at = NULL WHERE message_id = ?";
  await making.world.service.app.db.write([{ sql, args: [made.id] }]);
  return made;
}

async function steppedBroadcast(making: Making, steps: readonly string[]): Promise<Made> {
  const made = await post(making, "/v1/broadcasts", broadcastBody(making));
  for (const step of steps) await post(making, `/v1/broadcasts/${made.id}/${step}`);
  return made;
}

/** Operations whose object must be in a special state. */
const MAKERS_OF: Readonly<Record<string, (making: Making) => Promise<Made>>> = {
  "POST /v1/emails/{}/approve": awaitingMessage,
  "POST /v1/emails/{}/reject": awaitingMessage,
  "POST /v1/emails/{}/release": capturedMessage,
  "DELETE /v1/emails/{}": capturedMessage,
  "DELETE /v1/members/{}/sessions": signedInMember,
  "POST /v1/broadcasts/{}/pause": (making) => steppedBroadcast(making, ["send"]),
  "POST /v1/broadcasts/{}/resume": (making) => steppedBroadcast(making, ["send", "pause"]),
  "POST /v1/broadcasts/{}/cancel": (making) => steppedBroadcast(making, ["send"]),
};

async function importedFile(world: World, tenant: Tenant): Promise<Made> {
  const file = new Blob([`email\n${tenant.name}@example.com\n`], { type: "text/csv" });
  const ask = () => world.call("POST", "/v1/contacts/import", { key: tenant.key }, file);
  let answer = await ask();
  if (answer.status === 409) {
    await endImports(world, tenant);
    answer = await ask();
  }
  if (answer.status !== 202) throw new Error(answer.text);
  return answer.json;
}

/** Ends the imports in progress, because a world without workers never does. */
export async function endImports(world: World, { senderId }: Tenant): Promise<void> {
  const sql =
    "UPDATE imports SET status = 'done', ended_at = created_at WHERE sender_id = ? AND status <> 'done'";
  await world.service.app.db.write([{ sql, args: [senderId] }]);
}

async function trackedRecipient(making: Making) {
  const { id: messageId } = await post(making, "/v1/emails", sendItem(making));
  const { tracking: key } = openKeys(null, making.world.service.folder);
  return { key, token: recipientToken(key, { messageId, ord: 0 }) };
}

function sendItem({ tenant }: Making) {
  return {
    from: { email: `desk@${tenant.domain}`, name: tenant.name },
    to: [{ email: "ada@example.com", name: "Ada" }],
    subject: `${tenant.name} subject`,
    text: `${tenant.name} text`,
    html: `<p>${tenant.name} html</p>`,
    attachments: [{ filename: `${tenant.name}.txt`, content: "aGVsbG8=", contentType: "text/plain" }],
    scheduledAt: soon(),
  };
}

function inboxBody({ world, tenant }: Making) {
  const localPart = `in${world.next()}`;
  return { localPart, domainId: tenant.domainId, displayName: tenant.name };
}

function simulateBody({ tenant }: Making) {
  return {
    inboxId: tenant.inboxId,
    from: { email: "ada@example.com", name: "Ada" },
    subject: `${tenant.name} mail`,
    text: `${tenant.name} text`,
  };
}

function webhookBody({ world, tenant }: Making) {
  return { url: `https://hooks.example.com/${tenant.name}/${world.next()}`, eventTypes: ["*"] };
}

function templateBody({ world, tenant }: Making) {
  const slug = `${tenant.name}-${world.next()}`;
  return { slug, name: slug, subject: "Hello {{ user.name }}", html: "<p>{{ user.name }}</p>", text: "Hi" };
}

function recordBody({ world, tenant, above: [id = ""] }: Making) {
  const name = `r${world.next()}.${domainNames.get(id) ?? tenant.domain}`;
  return { type: "TXT", name, value: tenant.name };
}

function segmentBody({ tenant }: Making) {
  return { name: `${tenant.name} all`, filter: { field: "subscribed", op: "eq", value: true } };
}

function broadcastBody({ tenant }: Making) {
  const from = `news@${tenant.domain}`;
  return {
    name: `${tenant.name} letter`,
    topicId: tenant.topicId,
    from,
    subject: "Hi",
    text: "Hi {{ unsubscribeUrl }}",
  };
}

function topicBody({ tenant }: Making) {
  return { name: `${tenant.name} news` };
}

function propertyBody({ world }: Making) {
  return { name: `property_${world.next()}`, type: "string", fallback: "free" };
}

function listedBody({ world, tenant }: Making) {
  return { pattern: `@${tenant.name}-${world.next()}.example.net`, list: "block" };
}

function draft(making: Making) {
  const { from, subject, text } = sendItem(making);
  return { from: from.email, to: "ada@example.com", subject, text };
}

function contactBody({ world, tenant }: Making) {
  return { email: `${tenant.name}-${world.next()}@example.com` };
}

/** A valid body for each operation that takes one. If an operation is missing here, its test fails. */
const BODIES: Readonly<Record<string, (making: Making) => unknown>> = {
  "POST /v1/emails": sendItem,
  "POST /v1/emails/check": sendItem,
  // The second item fits the schema but is refused for its content, so that both kinds of result come back.
  "POST /v1/emails/batch": (making) => ({
    emails: [sendItem(making), { ...sendItem(making), from: { email: "desk@unverified.example.org" } }],
  }),
  "PATCH /v1/emails/{}": () => ({ scheduledAt: soon() }),
  "POST /v1/emails/{}/reject": () => ({ reason: "wrong recipient" }),
  "POST /v1/emails/{}/release": () => ({ to: "delivered@simulator.mail.test" }),
  "POST /v1/emails/{}/forward": ({ tenant }) => ({ to: "delivered@simulator.mail.test", text: tenant.name }),
  "POST /v1/drafts": draft,
  "PUT /v1/drafts/{}": draft,
  "POST /v1/drafts/{}/send": () => ({}),
  "POST /v1/threads/{}/notes": ({ tenant }) => ({ text: `${tenant.name} note` }),
  "POST /v1/erasures": contactBody,
  "PATCH /v1/threads/{}": () => ({ read: true, archived: false }),
  "PATCH /v1/account": ({ tenant }) => ({
    ownerEmail: `owner@${tenant.name}.example.org`,
    notices: { off: ["disk_low"] },
  }),
  "POST /v1/threads/{}/reply": ({ tenant }) => ({ text: `${tenant.name} reply` }),
  "POST /v1/inbound/simulate": simulateBody,
  "POST /v1/api-keys": ({ tenant }) => ({
    name: tenant.name,
    senderId: tenant.senderId,
    scopes: ["api_keys:write"],
  }),
  "POST /v1/routes": ({ world, tenant }) => ({ name: `${tenant.name} ${world.next()}`, kind: "mx" }),
  "PATCH /v1/routes/{}": ({ tenant, world }) => ({ name: `${tenant.name} ${world.next()}` }),
  "POST /v1/senders": ({ world, tenant }) => ({ name: `${tenant.name} ${world.next()}` }),
  "POST /v1/members": memberBody,
  "PATCH /v1/members/{}": () => ({ role: "support" }),
  "PATCH /v1/notices/{}": () => ({ seen: true }),
  "PATCH /v1/api-keys/{}": () => ({ name: "Renamed" }),
  "PATCH /v1/senders/{}": ({ tenant }) => ({ name: `${tenant.name} renamed` }),
  "POST /v1/domains": ({ world, tenant }) => ({ domain: `${tenant.name}-${world.next()}.example.net` }),
  "PATCH /v1/domains/{}": () => ({ delegated: true }),
  "POST /v1/domains/{}/records": recordBody,
  "POST /v1/contacts/{}/unsubscribe": () => ({}),
  "POST /v1/domains/{}/rotate-dkim": () => ({ dkimKeys: "both" }),
  "PATCH /v1/domains/{}/receiving": () => ({ enabled: true }),
  "POST /v1/inboxes": inboxBody,
  "PATCH /v1/inboxes/{}": ({ tenant }) => ({ displayName: `${tenant.name} desk` }),
  "POST /v1/webhooks": webhookBody,
  "PATCH /v1/webhooks/{}": () => ({ enabled: false }),
  "POST /v1/webhooks/{}/rotate-secret": () => ({ graceSeconds: 60 }),
  "POST /v1/webhooks/{}/test": () => ({ type: "bounce" }),
  "POST /v1/rules": () => RULE,
  "POST /v1/forward-addresses": contactBody,
  "POST /v1/inbound/senders": listedBody,
  "POST /v1/inboxes/{}/senders": listedBody,
  "PATCH /v1/rules/{}": () => ({ enabled: false }),
  "POST /v1/rules/try": ({ tenant }) => ({ emailId: tenant.receivedId }),
  "POST /v1/templates": templateBody,
  "PATCH /v1/templates/{}": ({ tenant }) => ({ name: `${tenant.name} renamed` }),
  "POST /v1/templates/{}/render": () => ({ data: { user: { name: "Ada" } } }),
  "POST /v1/templates/preview": () => ({ subject: "Hi {{ a }}", text: "{{ b }}", data: { a: "1" } }),
  "POST /v1/contacts": contactBody,
  "POST /v1/contact-properties": propertyBody,
  "PATCH /v1/contact-properties/{}": () => ({ fallback: "pro" }),
  "POST /v1/topics": topicBody,
  "PATCH /v1/topics/{}": () => ({ visible: false }),
  "POST /v1/segments": segmentBody,
  "POST /v1/segments/count": () => ({ filter: { field: "subscribed", op: "eq", value: true } }),
  "PATCH /v1/segments/{}": ({ tenant }) => ({ name: `${tenant.name} others` }),
  "POST /v1/broadcasts": broadcastBody,
  "POST /v1/broadcasts/{}/send": () => ({ allowMissing: true }),
  "POST /v1/broadcasts/{}/test": ({ tenant }) => ({ to: [`me@${tenant.domain}`] }),
  "PATCH /v1/broadcasts/{}": () => ({ subject: "Hello again" }),
  "POST /v1/contacts/batch": (making) => ({ contacts: [contactBody(making)] }),
  "PATCH /v1/contacts/{}": () => ({ firstName: "Ada", metadata: { plan: "pro" } }),
  "POST /v1/suppressions": contactBody,
  "POST /v1/suppressions/batch": (making) => ({ emails: [contactBody(making).email] }),
};

/** Query values that an operation requires. */
const QUERIES: Readonly<Record<string, string>> = {
  "POST /a/{}": "?decision=approve",
  "GET /v1/exports": "?email=ada%40example.com",
  "DELETE /v1/suppressions": "?email=ada%40example.com",
  "DELETE /v1/senders/{}": "?confirm=none",
};

/**
 * Returns null if the operation's object, body and query can be made, or else a description of the missing part.
 */
export function missingFor(operation: Operation): string[] {
  const missing = operation.pathParams
    .filter(({ collection }) => MAKERS[collection] === undefined)
    .map(({ collection }) => `${operation.key}: MAKERS has no "${collection}"`);
  if (operation.body !== null && BODIES[operation.key] === undefined)
    missing.push(`BODIES has no "${operation.key}"`);
  if (operation.query.some(({ required }) => required) && QUERIES[operation.key] === undefined)
    missing.push(`QUERIES has no "${operation.key}"`);
  return missing;
}

/** Returns a valid body for the tenant and the path, or undefined if the operation takes none. */
export function bodyFor(operation: Operation, world: World, tenant: Tenant, path = ""): unknown {
  if (operation.file !== null) return new Blob([operation.file.example], { type: operation.file.type });
  const above = /^\/v1\/domains\/([^/?]+)/.exec(path)?.slice(1) ?? [];
  return operation.body === null ? undefined : BODIES[operation.key]?.({ world, tenant, above });
}

/** The query that the operation requires. @param path names the project that a deletion confirms */
export function queryFor(operation: Operation, path = ""): string {
  const [, project = ""] = /^\/v1\/senders\/([^/?]+)$/.exec(path) ?? [];
  const externalId = operation.method === "DELETE" ? externalIds.get(project) : undefined;
  if (externalId !== undefined) return `?confirm=${encodeURIComponent(externalId)}`;
  return QUERIES[operation.key] ?? "";
}

/** Makes a new resource for each segment of the operation's path, each under the one before. */
export async function makePath(operation: Operation, world: World, tenant: Tenant): Promise<Made[]> {
  const made: Made[] = [];
  for (const { collection } of operation.pathParams) {
    const make = MAKERS_OF[operation.key] ?? MAKERS[collection];
    if (make === undefined) throw new Error(`MAKERS has no "${collection}"`);
    made.push(await make({ world, tenant, above: made.map(({ id }) => id) }));
  }
  return made;
}
