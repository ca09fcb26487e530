import type { WebhookDeps } from "../../src/flows/webhooks/webhooks.ts";
import { RightOfWay } from "../../src/core/concurrency/right-of-way.ts";
import { ALWAYS_ROOM } from "../../src/flows/free-space.ts";
import { generateKeyPairSync } from "node:crypto";
import type { TSchema } from "@sinclair/typebox";
import { loadConfig } from "../../src/config.ts";
import { newId } from "../../src/core/ids.ts";
import { check } from "../../src/core/validation.ts";
import { hashSecret, keyFor, type NewKey, newApiSecret } from "../../src/flows/account/api-keys.ts";
import type { DomainLookups, LookupResult } from "../../src/flows/records/lookups.ts";
import { openApiDocument } from "../../src/http/openapi/openapi.ts";
import type { RateLimiter } from "../../src/http/access/rate.ts";
import type { Route } from "../../src/http/routing/route.ts";
import { apiKeyRoutes } from "../../src/http/routes/projects/api-keys.ts";
import { domainRoutes } from "../../src/http/routes/domains.ts";
import { inboxRoutes } from "../../src/http/routes/emails/inboxes.ts";
import { senderRoutes } from "../../src/http/routes/projects/senders.ts";
import { webhookRoutes } from "../../src/http/routes/webhooks.ts";
import { generateDkimKey } from "../../src/mail/auth/dkim.ts";
import { createHttp, type Http, type HttpDeps } from "../../src/http/server/server.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { insertKey } from "../../src/store/projects/keys.ts";
import { insertProject, type Project } from "../../src/store/projects/projects.ts";
import { testDatabase } from "./database.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";
import { mayReach } from "./public-guard.ts";
import type { WarningDeps } from "../../src/flows/health/domains/warnings.ts";

export const SERVICE_DOMAIN = "post.example";

/** One account with two projects, and its keys' secrets. */
export interface TestAccount {
  id: string;
  /** Account-wide key. */
  wide: string;
  a: { id: string; externalId: string; key: string };
  b: { id: string; externalId: string; key: string };
}

/** A zone that lookups read. If a name is set to "failure", its lookup fails. */
export type TestZone = Map<string, readonly string[] | "failure">;

export interface CallOptions {
  /** Secret of the key: if left out, project `a` of `acme`; if null, no Authorization header is sent. */
  key?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Called {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into answers of any shape.
  json: any;
}

/** The API in process, on a real database file. */
export interface TestApi {
  db: Db;
  clock: ManualClock;
  http: Http;
  routes: readonly Route[];
  acme: TestAccount;
  other: TestAccount;
  zone: TestZone;
  /** The name servers of every zone, by name, each with its own records. */
  nameServers: Map<string, TestZone>;
  domains: WarningDeps;
  call(method: string, path: string, options?: CallOptions): Promise<Called>;
  /** Makes a key as given and returns its secret. */
  key(wanted: Partial<NewKey>): Promise<string>;
  close(): Promise<void>;
}

export interface TestApiOptions {
  limiter?: RateLimiter;
  maxBodyBytes?: number;
  allowPrivateWebhooks?: boolean;
  http?: Partial<HttpDeps>;
  routes?: (deps: { db: Db; clock: ManualClock } & Pick<WebhookDeps, "boxKey" | "urlRules">) => Route[];
}

// One key for all tests: making one takes longer than the tests themselves.
const pair = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "der" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
export const TEST_KEY = {
  privateKeyPem: pair.privateKey,
  publicKeyBase64: pair.publicKey.toString("base64"),
};
export const BOX_KEY = new Uint8Array(32).fill(7);
export const SESSION_KEY = new Uint8Array(32).fill(9);

/** Fails where a link to join topics would be mailed, in tests whose topics need none. */
export const asksToJoin = () => () => Promise.reject(new Error("no topic asks for a link"));

/** Lookups that read a zone: keys are `TYPE name`, e.g. `TXT example.com`. Every other name does not exist. */
export function zoneLookups(zone: TestZone): DomainLookups {
  const look = async (type: string, name: string): Promise<LookupResult<string>> => {
    const records = zone.get(`${type} ${name}`);
    if (records === "failure") return { status: "failure" };
    return records === undefined ? { status: "nxdomain" } : { status: "ok", records };
  };
  return {
    cname: (name) => look("CNAME", name),
    txt: (name) => look("TXT", name),
    ns: (name) => look("NS", name),
    a: (name) => look("A", name),
    aaaa: (name) => look("AAAA", name),
    async mx(name) {
      const found = await look("MX", name);
      return found.status === "ok"
        ? { status: "ok", records: found.records.map((exchange) => ({ preference: 10, exchange })) }
        : found;
    },
  };
}

/** A migrated database with two accounts of two projects each, and the API before it. */
export async function testApi(options: TestApiOptions = {}): Promise<TestApi> {
  const clock = manualClock();
  const { db, remove } = await testDatabase();
  const acme = await makeAccount(db, clock.now(), "acme");
  const other = await makeAccount(db, clock.now(), "other");
  const zone: TestZone = new Map();
  const nameServers = new Map<string, TestZone>();
  const config = {
    ...loadConfig({}),
    host: "127.0.0.1",
    port: 0,
    maxBodyBytes: options.maxBodyBytes ?? 100_000,
  };
  const domains: WarningDeps = {
    db,
    clock,
    boxKey: BOX_KEY,
    serviceDomain: SERVICE_DOMAIN,
    recheckSeconds: null,
    generateDkimKey: async (algorithm) => (algorithm === "rsa" ? TEST_KEY : generateDkimKey(algorithm)),
    lookups: zoneLookups(zone),
    secondaryNames: [],
    publicIps: [],
    isCaptureDomain: () => false,
    capturesAnyFrom: false,
    hostsDomains: false,
    receivers: null,
    findZoneServers: async () => [...nameServers].map(([name, its]) => ({ name, lookups: zoneLookups(its) })),
  };
  const urlRules = { mayReach, allowPrivate: options.allowPrivateWebhooks ?? false };
  const routes = [
    ...apiKeyRoutes({ db, config }),
    ...senderRoutes({ db, config }),
    ...domainRoutes(domains),
    ...inboxRoutes(domains),
    ...webhookRoutes({ db, boxKey: BOX_KEY, urlRules }),
    ...(options.routes?.({ db, clock, boxKey: BOX_KEY, urlRules }) ?? []),
  ];
  const http = createHttp({
    db,
    clock,
    config,
    routes,
    boxKey: BOX_KEY,
    sessionKey: SESSION_KEY,
    cursorKey: new Uint8Array(32).fill(3),
    limiter: options.limiter ?? null,
    keyLimiter: null,
    checks: [],
    docs: null,
    ui: null,
    onAnswer: null,
    quotas: config.quotas,
    rightOfWay: new RightOfWay(clock),
    space: ALWAYS_ROOM,
    ...options.http,
  });
  const call = (method: string, path: string, how: CallOptions = {}) =>
    callHttp(http, acme.a.key, method, path, how);
  return {
    db,
    clock,
    http,
    routes,
    acme,
    other,
    zone,
    nameServers,
    domains,
    async call(method, path, how) {
      const called = await call(method, path, how);
      checkDocumented(routes, method, path, called);
      return called;
    },
    key: (wanted) => makeKey(db, clock.now(), { ...keyOf(acme), ...wanted }),
    async close() {
      await http.stop(0);
      await remove();
    },
  };
}

async function callHttp(
  http: Http,
  defaultKey: string,
  method: string,
  path: string,
  how: CallOptions,
): Promise<Called> {
  const headers = new Headers(how.headers);
  if (how.key !== null) headers.set("authorization", `Bearer ${how.key ?? defaultKey}`);
  if (how.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
  const body =
    typeof how.body === "string" || how.body instanceof ReadableStream ? how.body : JSON.stringify(how.body);
  const request = new Request(`http://localhost${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const response = await http.fetch(request);
  const text = await response.text();
  const isJson = text !== "" && response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null };
}

/** Checks that the reference shows every answer of a route: its status is listed and its body fits the schema. */
function checkDocumented(routes: readonly Route[], method: string, path: string, called: Called): void {
  const pathname = path.split("?")[0] ?? "";
  const route = routes.find((candidate) => candidate.method === method && matches(candidate.path, pathname));
  if (route === undefined) return;
  const documented = operationOf(route).responses;
  if (!Object.hasOwn(documented, String(called.status)))
    throw new Error(`${method} ${route.path} answers ${called.status}, which its reference does not list`);
  const schema = route.answers[called.status];
  if (schema === null && called.text !== "")
    throw new Error(`${route.path} answers a body with ${called.status}`);
  if (schema === undefined || schema === null || typeof schema === "string") return;
  const issues = check(schema as TSchema, called.json);
  if (issues.length > 0)
    throw new Error(`${method} ${route.path}: ${JSON.stringify(issues)} in ${called.text}`);
}

function matches(pattern: string, path: string): boolean {
  return new RegExp(`^${pattern.replace(/:\w+/g, "[^/]+")}/?$`).test(path);
}

/** The part of the reference about a route. */
export function operationOf(route: Route): { responses: Record<string, unknown>; operationId: string } {
  const document = openApiDocument([route]);
  const paths = document.paths as Record<string, Record<string, ReturnType<typeof operationOf>>>;
  const operation = Object.values(Object.values(paths)[0] ?? {})[0];
  if (operation === undefined) throw new Error(`no operation for ${route.path}`);
  return operation;
}

async function makeAccount(db: Db, now: number, name: string): Promise<TestAccount> {
  const id = newId("acc", now);
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, ?, ?, ?)",
      args: [id, name, `owner@${name}.example`, now],
    },
  ]);
  const account = { accountId: id, name: "test", scopes: [] };
  const project = async (externalId: string) => {
    const sender = testSender(id, externalId, now);
    await db.write([insertProject(sender)]);
    const key = await makeKey(db, now, { ...account, senderId: sender.id, senderExternalId: externalId });
    return { id: sender.id, externalId, key };
  };
  const wide = await makeKey(db, now, { ...account, senderId: null, senderExternalId: null });
  return { id, wide, a: await project(`${name}-a`), b: await project(`${name}-b`) };
}

/** A sender without limits. */
export function testSender(accountId: string, externalId: string, now: number): Project {
  return {
    id: newId("snd", now),
    accountId,
    externalId,
    name: externalId,
    plan: "unlimited",
    trustTier: "unlimited",
    dailyQuota: null,
    trackOpens: true,
    trackClicks: true,
    textFromHtml: true,
    routeIds: [],
    contentDays: null,
    eventDays: null,
    spamCheckFail: null,
    postalAddress: null,
    suspendedAt: null,
    createdAt: now,
  };
}

function keyOf(account: TestAccount): NewKey {
  return { accountId: account.id, name: "test", senderId: null, senderExternalId: null, scopes: [] };
}

async function makeKey(db: Db, now: number, wanted: NewKey): Promise<string> {
  const secret = newApiSecret();
  await db.write([insertKey(keyFor(secret, wanted, now), hashSecret(secret))]);
  return secret;
}
