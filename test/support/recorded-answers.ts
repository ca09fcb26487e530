import { seal } from "../../src/core/crypto/secretbox.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { MAKERS, makePath, missingFor, queryFor } from "./estate.ts";
import { fill, type Operation } from "./openapi-document.ts";
import { SERVICE_DOMAIN } from "./service.ts";
import { send, type Tenant, type World } from "./tenants.ts";

/** A read of the API, and its answer. */
export interface RecordedAnswer {
  path: string;
  key: string;
  status: number;
  body: unknown;
}

/** Reads that answer for this process or this moment, or that never end. */
const OF_THE_MOMENT = [
  "GET /v1/health",
  "GET /v1/metrics",
  "GET /v1/events/stream",
  "GET /v1/emails/wait",
  "GET /v1/settings",
  "GET /v1/lanes",
];

const TENANTS = ["home", "sibling", "stranger"] as const;

function reads({ operations }: World): Operation[] {
  return operations.filter(
    (operation) =>
      operation.method === "GET" &&
      operation.path.startsWith("/v1/") &&
      !OF_THE_MOMENT.includes(operation.key) &&
      missingFor(operation).length === 0,
  );
}

/** Makes one of each resource for each tenant. Returns the path of every read of it. */
export async function makeEstate(world: World): Promise<{ path: string; key: string }[]> {
  const paths: { path: string; key: string }[] = [];
  for (const name of TENANTS) {
    const tenant = world[name];
    await makeMail(world, tenant);
    for (const operation of reads(world)) {
      const ids = (await makePath(operation, world, tenant)).map(({ id }) => id);
      const path = `${fill(operation, ids)}${queryFor(operation)}`;
      const key = operation.level === "account" ? tenant.wide : tenant.key;
      paths.push({ path, key });
    }
  }
  await makeRows(world);
  return paths;
}

/** Mail in several states, and what else no maker makes: an open, a complaint, a record, an idempotent answer. */
async function makeMail(world: World, tenant: Tenant): Promise<void> {
  const call = async (path: string, body: unknown, headers = {}) => {
    const answer = await world.call("POST", path, { key: tenant.key, headers }, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  };
  const simulator = `simulator.${SERVICE_DOMAIN}`;
  const large = Buffer.alloc(400 * 1024, tenant.name).toString("base64");
  const item = {
    from: { email: `desk@${tenant.domain}` },
    to: ["delivered", "bounced", "complained", "deferred"].map((name) => ({ email: `${name}@${simulator}` })),
    subject: "Several",
    html: "<p>hello</p>",
    attachments: [{ filename: "large.bin", content: large, contentType: "application/octet-stream" }],
  };
  await call("/v1/emails", item, { "idempotency-key": `several-${tenant.name}` });
  const sent = {
    inboxId: tenant.inboxId,
    from: { email: "ada@example.com" },
    subject: "Hi",
    text: "Where?",
    headers: { "In-Reply-To": `<unknown-${tenant.name}@example.com>` },
  };
  const { threadId } = await call("/v1/inbound/simulate", sent);
  await call(`/v1/threads/${threadId}/reply`, { text: "Here." });
  await call(`/v1/threads/${threadId}/notes`, { text: "She called." });
  const made = await makeOne(world, tenant, "/o");
  await world.call("GET", `/o/${made}`, { key: null });
  await makeOne(world, tenant, "/v1/suppressions");
  await makeOne(world, tenant, "/v1/domains/{}/records", [await makeOne(world, tenant, "/v1/domains")]);
}

async function makeOne(
  world: World,
  tenant: Tenant,
  collection: string,
  above: string[] = [],
): Promise<string> {
  const make = MAKERS[collection];
  if (make === undefined) throw new Error(`MAKERS has no "${collection}"`);
  return (await make({ world, tenant, above })).id;
}

/** Rows that only other processes, reports and certificate authorities make, each with a few of its columns. */
async function makeRows({ service, home }: World): Promise<void> {
  const { db } = service.app;
  const { box } = openKeys(null, service.folder);
  const day = "2026-01-31";
  const letter = await db.first<{ id: string }>("SELECT id FROM broadcasts WHERE sender_id = ?", [
    home.senderId,
  ]);
  const rows: Record<string, Record<string, string | number>> = {
    lanes: { name: "mx.example.net", state: "{}", version: 1, changed_by: "ins_1", changed_at: 1 },
    notices: {
      id: "ntc_1",
      account_id: home.accountId,
      sender_id: home.senderId,
      kind: "rule_disabled",
      subject_id: "rul_1",
      subject: "Newsletters",
      at: 1,
      mailed_at: 0,
    },
    notice_settings: { account_id: home.accountId, off: '["disk_low"]' },
    warm_ups: { lane: "mx.example.net@192.0.2.1", day: 1, step: 2, target: 1000 },
    mta_sts_policies: {
      domain: "sts.example",
      policy_id: "1",
      mode: "enforce",
      mx: "[]",
      max_age_seconds: 86400,
      fetched_at: 1,
      expires_at: 4e12,
    },
    report_rows: {
      id: "rpt_1",
      domain_id: home.domainId,
      kind: "dmarc",
      day,
      counts: 1,
      reporter: "example.com",
      source: "192.0.2.1",
      result: "pass",
      disposition: "none",
      messages: 3,
    },
    taken_reports: {
      domain_id: home.domainId,
      kind: "dmarc",
      day,
      counts: 1,
      reporter: "example.com",
      report_id: "1",
    },
    acme_accounts: {
      directory: "https://ca.example/dir",
      private_key: seal(box, "key"),
      contact: "mailto:o@x.test",
      created_at: 1,
    },
    certificates: {
      id: home.domainId,
      domain_id: home.domainId,
      directory: "https://ca.example/dir",
      names: "[]",
      chain: "chain",
      private_key: seal(box, "key"),
      issued_at: 1,
      not_after: 2,
      due_at: 4e12,
    },
    thread_references: {
      inbox_id: home.inboxId,
      rfc_message_id: "<other@example.com>",
      sender_id: home.senderId,
      thread_id: "thr_1",
    },
    listed_senders: {
      id: "lse_1",
      sender_id: home.senderId,
      inbox_id: home.inboxId,
      pattern: "@example.com",
      list: "block",
      created_at: 1,
    },
    forward_addresses: {
      id: "fwd_1",
      sender_id: home.senderId,
      email: "ada@example.com",
      email_key: "ada@example.com",
      asked_at: 1,
      mails: 1,
      created_at: 1,
    },
    rule_effects: {
      message_id: home.receivedId,
      ord: 1,
      sender_id: home.senderId,
      rule_id: "rul_1",
      reason: "loop",
      created_at: 1,
    },
    erased_unsubscriptions: { sender_id: home.senderId, address: "erased:ada" },
    complaints: { sender_id: home.senderId, email: "ada@example.com", day },
    erasures: {
      id: "ers_1",
      account_id: home.accountId,
      sender_id: home.senderId,
      status: "done",
      created_at: 1,
    },
    broadcast_figures: { broadcast_id: letter?.id ?? "", hour: 1, delivered: 1 },
    broadcast_variants: { message_id: home.receivedId, broadcast_id: letter?.id ?? "", variant: "a" },
    broadcast_variant_figures: { broadcast_id: letter?.id ?? "", variant: "a", recipients: 1 },
    stats_providers: { sender_id: home.senderId, day: 1, provider: "google", delivered: 1 },
  };
  await insertRows(db, rows);
}

/** Leaves an event whose deliveries are still to be made. A worker would make them, so none may run. */
export function makeFanOut({ service, home }: World): Promise<unknown> {
  const row = { id: "evt_1", first_message: "msg_1", last_message: "msg_1", webhooks: "[]", events: "[]" };
  return insertRows(service.app.db, { fan_outs: { sender_id: home.senderId, ...row } });
}

function insertRows(db: Db, rows: Record<string, Record<string, string | number>>): Promise<unknown> {
  return db.write(
    Object.entries(rows).map(([table, row]) => ({
      sql: `INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${Object.keys(row)
        .map(() => "?")
        .join(", ")})`,
      args: Object.values(row),
    })),
  );
}

/** Asks for each path. */
export async function answersAt(
  url: string,
  paths: readonly { path: string; key: string }[],
): Promise<RecordedAnswer[]> {
  const answers: RecordedAnswer[] = [];
  for (const { path, key } of paths) {
    const { status, json, text } = await send(url, "GET", path, { key });
    answers.push({ path, key, status, body: json ?? text });
  }
  return answers;
}
