import { newId } from "../../src/core/ids.ts";
import { hashSecret, keyFor, newApiSecret } from "../../src/flows/account/api-keys.ts";
import { insertKey, revokeKey } from "../../src/store/projects/keys.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { testSender } from "./api.ts";
import { publish } from "./dns.ts";
import { type Document, type Operation, operationsOf } from "./openapi-document.ts";
import { startService, type TestService, verifiedDomain } from "./service.ts";

/** A project with its keys and a domain that sends and receives. Everything it owns contains its name. */
export interface Tenant {
  name: string;
  accountId: string;
  senderId: string;
  externalId: string;
  /** Secrets of its project key and of its account's key. */
  key: string;
  wide: string;
  domain: string;
  domainId: string;
  /** An inbox that receives simulated mail, and a message there. */
  inboxId: string;
  receivedId: string;
  topicId: string;
}

export interface RawAnswer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into answers of any shape.
  json: any;
}

export interface Presented {
  key: string | null;
  headers?: Record<string, string>;
}

/** The service with three projects: `home`, its `sibling` in the same account, and a `stranger` in another one. */
export interface World {
  service: TestService;
  document: Document;
  operations: Operation[];
  home: Tenant;
  sibling: Tenant;
  stranger: Tenant;
  /** Calls the API. If the body is a string, it is sent as it is. */
  call(method: string, path: string, presented: Presented, body?: unknown): Promise<RawAnswer>;
  /** Makes a key and returns its secret and id. */
  makeKey(tenant: Tenant, wanted: KeyWanted): Promise<{ secret: string; id: string }>;
  revoke(tenant: Tenant, keyId: string): Promise<void>;
  /** Returns a number that was not used before. */
  next(): number;
  stop(): Promise<void>;
}

export interface KeyWanted {
  scopes: readonly string[];
  wide: boolean;
}

/** No worker runs, so accepted messages keep their state and the cells of a matrix do not affect each other. */
export const WORLD_SETTINGS = {
  SMTP_RELAY_URL: "smtp://127.0.0.1:25",
  DKIM_KEYS_PER_HOUR: "0",
  ROLES: "api",
  PLAN_PRO: "unlimited",
  MAX_BODY_BYTES: "2000000",
};

/** Starts the service and makes the projects. */
export async function startWorld(env: Record<string, string> = {}): Promise<World> {
  const service = await startService({ ...WORLD_SETTINGS, ...env });
  let count = 0;
  const call: World["call"] = (method, path, presented, body) =>
    send(service.url, method, path, presented, body);
  const document = (await call("GET", "/docs/json", { key: null })).json as Document;
  const makeKey: World["makeKey"] = (tenant, wanted) => putKey(service, tenant, wanted);
  const acme = await putAccount(service, "zzacme");
  const other = await putAccount(service, "zzother");
  const world: World = {
    service,
    document,
    operations: operationsOf(document),
    call,
    makeKey,
    home: await putTenant(service, acme, "zzhome"),
    sibling: await putTenant(service, acme, "zzsibling"),
    stranger: await putTenant(service, other, "zzstranger"),
    async revoke(tenant, keyId) {
      await revokeKey(service.app.db, tenant.accountId, null, keyId, 1);
    },
    next: () => ++count,
    stop: () => service.stop(),
  };
  return world;
}

/** Sends one request and reads the answer. */
export async function send(
  url: string,
  method: string,
  path: string,
  { key, headers = {} }: Presented,
  body?: unknown,
): Promise<RawAnswer> {
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined || body instanceof Blob ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body) }),
  });
  const text = await textOf(response);
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson && text !== "" ? JSON.parse(text) : null,
  };
}

/** Returns the body; of a stream, which has no end, only its start. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  const reader = response.body?.getReader();
  const start = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(start?.value);
}

async function putAccount({ app: { db } }: TestService, name: string): Promise<{ id: string; wide: string }> {
  const now = Date.now();
  const id = newId("acc", now);
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, ?, ?, ?)",
      args: [id, name, `owner@${name}.example`, now],
    },
  ]);
  const wide = newApiSecret();
  const owner = { accountId: id, name, senderId: null, senderExternalId: null, scopes: [] };
  await db.write([insertKey(keyFor(wide, owner, now), hashSecret(wide))]);
  return { id, wide };
}

async function putKey(
  { app: { db } }: TestService,
  tenant: Pick<Tenant, "accountId" | "senderId" | "externalId" | "name">,
  { scopes, wide }: KeyWanted,
): Promise<{ secret: string; id: string }> {
  const secret = newApiSecret();
  const { accountId, name } = tenant;
  const project = wide
    ? { senderId: null, senderExternalId: null }
    : { senderId: tenant.senderId, senderExternalId: tenant.externalId };
  const key = keyFor(secret, { accountId, name, ...project, scopes: [...scopes] }, Date.now());
  await db.write([insertKey(key, hashSecret(secret))]);
  return { secret, id: key.id };
}

async function putTenant(
  service: TestService,
  account: { id: string; wide: string },
  name: string,
): Promise<Tenant> {
  const sender = testSender(account.id, name, Date.now());
  await service.app.db.write([insertProject(sender)]);
  const ids = { name, accountId: account.id, senderId: sender.id, externalId: name };
  const { secret: key } = await putKey(service, ids, { scopes: [], wide: false });
  const domain = `${name}.example.org`;
  const domainId = await verifiedDomain(service, domain, key);
  const receiving = await service.call(
    "PATCH",
    `/v1/domains/${domainId}/receiving`,
    { enabled: true },
    { key },
  );
  publish(service.dns, receiving.body.records);
  const inbox = await service.call("POST", "/v1/inboxes", { address: `desk@${domain}` }, { key });
  const inboxId = inbox.body.id;
  const received = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hi" }, { key });
  const topic = await service.call("POST", "/v1/topics", { name }, { key });
  const made = { domainId, inboxId, receivedId: received.body.messageId, topicId: topic.body.id };
  return { ...ids, key, wide: account.wide, domain, ...made };
}
