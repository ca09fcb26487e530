/** An installation on three hosts, with its surroundings, and each of its parts as a run ends it and brings it back. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { publish, startDns } from "../../../test/support/dns.ts";
import { startRedis } from "../../../test/support/redis.ts";
import { type Called, callRole, type RoleProcess, startRole } from "../../../test/support/role-process.ts";
import { S3_BUCKET, S3_KEYS, startS3 } from "../../../test/support/s3-server.ts";
import { startSqld } from "../../../test/support/sqld.ts";
import { benchFolder } from "../../support/folder.ts";
import { type Host, OUTSIDE_IP } from "./hosts.ts";
import type { LoadTarget } from "./load.ts";
import {
  DOMAIN,
  EVENTS,
  type Ground,
  HOOK,
  INBOX,
  type ProvedService,
  RECIPIENT_DOMAINS,
} from "./service.ts";
import { startHookSink, startMailSink } from "./sink.ts";

/** Time after which each replica has the writes of other processes. */
const SYNC_MS = 2000;
const TRIES = 10;
const ROOT_KEY = "root-key-of-this-run-0123456789abcdef";
/** More than the database keeps if there is an object store. */
const LARGE_OCTETS = 200_000;
/** Characters of each process's log that are shown if the run fails. */
const LAST_WORDS = 3000;
const HTTP_PORT = 3000;
const SMTP_PORT = 2525;

/** A part that can be away. */
export interface Part {
  end(): unknown;
  back(): unknown;
}

export interface Installation {
  /** The readings of a check. */
  ground: Ground;
  target: LoadTarget;
  /** The API that takes the next request: a load balancer takes turns. */
  nextUrl(): string;
  /** Path of a content in the object store. */
  stored: string;
  parts: Readonly<Record<string, Part>>;
  stop(): Promise<void>;
}

/**
 * Starts it. Host 1 has an API with an embedded replica, and a worker. Host 2 has the same, and the SMTP listener. Host 3 has the
 * primary (sqld) and Redis. The object store, clients, mail servers and webhook endpoints are outside.
 */
export async function startInstallation([one, two, three]: readonly [
  Host,
  Host,
  Host,
]): Promise<Installation> {
  const home = benchFolder();
  const [dns, sink, hooks, s3] = [await startDns(), startMailSink(), startHookSink(), await startS3()];
  for (let n = 0; n < RECIPIENT_DOMAINS; n++)
    dns.add({ name: `there${n}.test`, type: "A", data: OUTSIDE_IP });
  const sqld = await startSqld({ host: three.ip, inside: three.inside });
  const redis = await startRedis({ host: three.ip, inside: three.inside });

  const processes: { running(): RoleProcess }[] = [];
  const part = async (
    host: Host,
    role: string,
    at: number,
    env: Record<string, string> = {},
  ): Promise<Part> => {
    const folder = join(home, `${role}-${host.ip}`);
    mkdirSync(folder);
    const settings = {
      ROLES: role,
      HOST: host.ip,
      SMTP_HOST: host.ip,
      PORT: String(HTTP_PORT + at),
      DATA_DIR: folder,
      SMTP_PORT: String(SMTP_PORT),
      DATABASE_URL: sqld.url,
      REDIS_URL: redis.url,
      ROOT_API_KEY: ROOT_KEY,
      MASTER_KEY: "one-that-all-processes-of-this-run-have",
      DELIVERY: "mx",
      DESTINATION_RATE: "0",
      DNS_SERVERS: dns.address,
      SMTP_OUT_PORT: String(sink.port),
      DELIVERY_RETRY_SECONDS: "1,2,5,5,5,5,5,5,5,5",
      WEBHOOK_RETRY_SECONDS: "0,1,2,5,5,5,5,5",
      CONTENT_STORE: `s3://${S3_BUCKET}/post`,
      S3_ENDPOINT: s3.endpoint,
      S3_REGION: S3_KEYS.region,
      S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
      S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
      ...env,
    };
    const start = (): Promise<RoleProcess> => startRole(settings, undefined, host.inside);
    let child = await start();
    processes.push({ running: () => child });
    return {
      end: () => child.kill(),
      async back() {
        child = await start();
      },
    };
  };
  const replica = (host: Host): Record<string, string> => ({
    DATABASE_URL: `file:${join(home, `api-${host.ip}`, "replica.db")}`,
    DATABASE_SYNC_URL: sqld.url,
  });
  const apis = [await part(one, "api", 0, replica(one)), await part(two, "api", 0, replica(two))] as const;
  const smtp = await part(two, "smtp", 1);
  const workers = [await part(one, "worker", 2), await part(two, "worker", 2)] as const;
  process.on("exit", (code) => {
    if (code !== 0)
      for (const { running } of processes) console.error(running().output().stderr.slice(-LAST_WORDS));
  });

  let turn = 0;
  const nextUrl = (): string => `http://${[one, two][turn++ % 2]?.ip}:${HTTP_PORT}`;
  const call = (method: string, path: string, body?: unknown): Promise<Called> =>
    callRole({ url: nextUrl() }, ROOT_KEY, method, path, body).catch(() =>
      callRole({ url: nextUrl() }, ROOT_KEY, method, path, body),
    );
  const key = await prepare(call, (records) => publish(dns, records), hooks.url(HOOK));
  const service = { key, url: nextUrl(), call } as unknown as ProvedService;
  return {
    ground: { home, dns, sink, hooks, service, file: sqld.file } as Ground,
    target: {
      get url(): string {
        return nextUrl();
      },
      smtpHost: two.ip,
      smtpPort: SMTP_PORT,
      key,
    },
    nextUrl,
    stored: await storedContent(call, () => [...s3.objects.values()]),
    parts: {
      nothing: { end: () => undefined, back: () => undefined },
      "API with its replica, host 1": apis[0],
      "API with its replica, host 2": apis[1],
      "SMTP listener": smtp,
      "worker, host 1": workers[0],
      "worker, host 2": workers[1],
      "primary (sqld)": { end: () => sqld.kill(), back: () => sqld.restart() },
      Redis: { end: () => redis.kill(), back: () => redis.restart() },
      "object store": { end: () => s3.stop(), back: () => s3.start() },
      "network of host 1": { end: () => one.unplug(), back: () => one.plugIn() },
    },
    async stop() {
      for (const { running } of processes) await running().kill();
      await sqld.stop();
      await redis.stop();
    },
  };
}

type Call = (method: string, path: string, body?: unknown) => Promise<Called>;

/** Calls until the answer is a success. On a busy machine, a commit may take too long. */
async function expectOk(call: Call, method: string, path: string, body?: unknown): Promise<Called["body"]> {
  let answer = await call(method, path, body);
  for (let tries = 1; answer.status === 503 && tries < TRIES; tries++) {
    await Bun.sleep(SYNC_MS);
    answer = await call(method, path, body);
  }
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Makes a domain that receives, an inbox and a webhook. Returns the key of the load. */
async function prepare(
  call: Call,
  publishAll: (records: Called["body"]) => void,
  hook: string,
): Promise<string> {
  const made = await expectOk(call, "POST", "/v1/domains", { domain: DOMAIN });
  publishAll(made.records);
  await Bun.sleep(SYNC_MS);
  await expectOk(call, "POST", `/v1/domains/${made.id}/verify`);
  await Bun.sleep(SYNC_MS);
  publishAll((await expectOk(call, "PATCH", `/v1/domains/${made.id}/receiving`, { enabled: true })).records);
  await Bun.sleep(SYNC_MS);
  await expectOk(call, "POST", "/v1/inboxes", { address: INBOX });
  await expectOk(call, "POST", "/v1/webhooks", { url: hook, eventTypes: EVENTS });
  const [sender] = (await expectOk(call, "GET", "/v1/senders")).data;
  const scopes = ["emails:send", "emails:read"];
  const { secret } = await expectOk(call, "POST", "/v1/api-keys", {
    name: "load",
    senderId: sender.id,
    scopes,
  });
  await Bun.sleep(SYNC_MS);
  return secret;
}

/** Sends a message whose attachment moves to the object store. Returns the path at which it is read. */
async function storedContent(call: Call, objects: () => Uint8Array[]): Promise<string> {
  const content = Buffer.from(crypto.getRandomValues(new Uint8Array(LARGE_OCTETS / 4))).toString("base64");
  const attachments = [{ filename: "large.bin", contentType: "application/octet-stream", content }];
  const mail = { from: { email: `a@${DOMAIN}` }, to: [{ email: "large@there0.test" }], subject: "large" };
  const { id } = await expectOk(call, "POST", "/v1/emails", { ...mail, text: "x", attachments });
  while (!objects().some(({ length }) => length > LARGE_OCTETS / 5)) await Bun.sleep(SYNC_MS);
  const shown = await expectOk(call, "GET", `/v1/emails/${id}`);
  return `/v1/emails/${id}/attachments/${shown.attachments[0].id}`;
}
