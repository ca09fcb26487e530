import { type App, startApp, type Surroundings } from "../../src/app.ts";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { databaseWithSchema } from "./database.ts";
import { publish, startDns, type TestDns } from "./dns.ts";
import { newDataFolder, removeFolder } from "./folder.ts";
import { recurringRsaKey } from "./rsa-keys.ts";

/** A parsed answer of the API. */
export interface ApiAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API shows.
  body: any;
}

/** The whole service in the test's own process, on free ports and in its own folder. */
export interface TestService {
  app: App;
  dns: TestDns;
  folder: string;
  /** Settings by which another process of it opens the same database. */
  sameDatabase: Record<string, string>;
  url: string;
  smtpPort: number;
  /** Reads `/metrics`. */
  metrics(): Promise<string>;
  /** Account-wide key, and the key of the first project. */
  accountKey: string;
  projectKey: string;
  /** Calls the API with the project's key unless another is given. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<ApiAnswer>;
  /**
   * Sends a message to a@one.test with the subject "Hi" and the text "x", unless the item has others or a template.
   * Returns its id. Throws unless the answer is 202.
   */
  send(item: Record<string, unknown> & { from: unknown }): Promise<string>;
  /** Asks for the message until it has the state. Fails shortly before the test's time limit. */
  message(id: string, status: string): Promise<ApiAnswer["body"]>;
  /** Stops the service and starts it again on the same files. */
  restart(env?: Record<string, string>): Promise<void>;
  /** Stops it. Work in progress, which no test waits for any more, soon is cut off. */
  stop(): Promise<void>;
}

export interface CallOptions {
  key?: string;
  headers?: Record<string, string>;
}

/**
 * Less than a test's time limit, so that the failure names the message's actual state. Part of it covers a busy
 * machine.
 */
const MESSAGE_WAIT_MS = 15_000;
const POLL_MS = 5;
/** Number of looks at an unchanged row of a message before the test asks for its record again. */
const LOOKS = 20;
/** Milliseconds that the end of a test leaves to work in progress. */
const GRACE_MS = 2_000;
export const SERVICE_DOMAIN = "mail.test";
export const OWNER = "owner@example.com";

/** Starts the service against a DNS zone of the test. `env` overrides settings, `around` what is around it. */
export async function startService(
  env: Record<string, string> = {},
  clock: Clock = systemClock,
  around: Partial<Surroundings> = {},
): Promise<TestService> {
  const folder = newDataFolder("service");
  const dns = await startDns();
  const database = env.DATABASE_URL === undefined ? await databaseWithSchema(folder) : null;
  const settings = {
    ...database?.env,
    HOST: "127.0.0.1",
    PORT: "0",
    SMTP_HOST: "127.0.0.1",
    SMTP_PORT: "0",
    DATA_DIR: folder,
    SERVICE_DOMAIN,
    OWNER_EMAIL: OWNER,
    DELIVERY: "capture",
    // The tests are mostly about the rules that other modes have.
    CAPTURE_STRICT: "1",
    DNS_SERVERS: dns.address,
    ALLOW_PRIVATE_MX: "1",
    ALLOW_PRIVATE_WEBHOOKS: "1",
    METRICS_PORT: "0",
    ...env,
  };
  const launch = (over: Record<string, string> = {}) =>
    startApp(loadConfig({ ...settings, ...over }), clock, {
      makeRsaKey: recurringRsaKey,
      ...around,
    });
  let app = await launch();
  const { accountKey, projectKey } = app.firstStart ?? { accountKey: null, projectKey: "" };
  const service: TestService = {
    app,
    dns,
    folder,
    sameDatabase: { DATA_DIR: folder, ...database?.otherEnv },
    url: `http://127.0.0.1:${app.ports.http}`,
    smtpPort: app.ports.smtp ?? 0,
    accountKey: accountKey ?? "",
    projectKey,
    async call(method, path, body, options = {}) {
      const response = await fetch(`${service.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${options.key ?? projectKey}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...options.headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = response.headers.get("content-type")?.startsWith("application/json");
      return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
    },
    async send(item) {
      const texts = "templateId" in item ? {} : { subject: "Hi", ...("html" in item ? {} : { text: "x" }) };
      const mail = { to: "a@one.test", ...texts, ...item };
      const { status, body } = await service.call("POST", "/v1/emails", mail);
      if (status !== 202) throw new Error(`the send was answered ${status}: ${JSON.stringify(body)}`);
      return body.id;
    },
    async metrics() {
      return (await fetch(`http://127.0.0.1:${service.app.ports.metrics}/metrics`)).text();
    },
    async message(id, status) {
      const until = systemClock.now() + MESSAGE_WAIT_MS;
      for (;;) {
        const { body } = await service.call("GET", `/v1/emails/${id}`);
        if (body.status === status) return body;
        if (systemClock.now() > until)
          throw new Error(`${id} is ${body.status}, not ${status}: ${JSON.stringify(body)}`);
        await changed(app.db, id, body.status);
      }
    },
    async restart(over) {
      await app.stop();
      app = await launch(over);
      service.app = app;
      service.url = `http://127.0.0.1:${app.ports.http}`;
      service.smtpPort = app.ports.smtp ?? 0;
    },
    async stop() {
      await app.stop(GRACE_MS);
      await database?.stop();
      dns.stop();
      removeFolder(folder);
    },
  };
  return service;
}

/**
 * Resolves when the message's row no longer has the status, or after some looks, because its record may show more than the row. A look
 * is one read, and a request for the record many.
 */
async function changed(db: App["db"], id: string, status: string): Promise<void> {
  for (let look = 0; look < LOOKS; look++) {
    await Bun.sleep(POLL_MS);
    const row = await db
      .first<{ status: string }>("SELECT status FROM messages WHERE id = ?", [id])
      // Tests also cut the database off.
      .catch(() => null);
    if (row !== null && row.status !== status) return;
  }
}

/** Registers a domain, adds its records to the test's zone, and verifies it. Returns its id. */
export async function verifiedDomain(service: TestService, name: string, key?: string): Promise<string> {
  const options = key === undefined ? {} : { key };
  const made = await service.call("POST", "/v1/domains", { domain: name }, options);
  if (made.status !== 201) throw new Error(`not registered: ${JSON.stringify(made.body)}`);
  publish(service.dns, made.body.records);
  const verified = await service.call("POST", `/v1/domains/${made.body.id}/verify`, undefined, options);
  if (verified.body.status !== "verified") throw new Error(`not verified: ${JSON.stringify(verified.body)}`);
  return made.body.id;
}

/** Makes a domain that receives, with an inbox at each address. Returns the inboxes' ids. */
export async function receivingInboxes(
  service: TestService,
  domain: string,
  addresses: string[],
  key = service.projectKey,
): Promise<string[]> {
  const id = await verifiedDomain(service, domain, key);
  const receiving = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true }, { key });
  publish(service.dns, receiving.body.records);
  const ids: string[] = [];
  for (const address of addresses)
    ids.push((await service.call("POST", "/v1/inboxes", { address }, { key })).body.id);
  return ids;
}
