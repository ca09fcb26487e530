import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import type { Surroundings } from "../../src/app.ts";
import { systemClock } from "../../src/clock.ts";
import { type MxMessage, startMx, type TestMx } from "./mx.ts";
import { startService, type TestService, verifiedDomain } from "./service.ts";

/** A relay of a provider with its route, which the first project takes from then on. */
export interface TestRelay {
  id: string;
  url: string;
  peer: TestMx;
  /** Sends a message by it. Returns its id, and the message as the relay got it. */
  send(more?: Record<string, unknown>): Promise<{ id: string; message: MxMessage }>;
}

/** A service with a route of a relay for each test. */
export interface Relayed {
  service: TestService;
  relay(name: string, events: Record<string, unknown> | null): Promise<TestRelay>;
  wide(method: string, path: string, body?: unknown): ReturnType<TestService["call"]>;
  stop(): Promise<void>;
}

/** Stands for the address of a message in what providers say of it. */
export const TO = "ana@to.test";

let count = 0;

/** Returns what a provider says of a message, about its recipient. */
export function about<Said>(said: Said, { rcptTo }: Pick<MxMessage, "rcptTo">): Said {
  return JSON.parse(JSON.stringify(said).replaceAll(TO, rcptTo[0] ?? ""));
}

/** Starts a service that sends by relays. */
export async function startRelayed(
  env: Record<string, string> = {},
  around: Partial<Surroundings> = {},
): Promise<Relayed> {
  const service = await startService({ DELIVERY: "mx", ...env }, systemClock, around);
  await verifiedDomain(service, "sender.test");
  const peers: TestMx[] = [];
  const wide: Relayed["wide"] = (method, path, body) =>
    service.call(method, path, body, { key: service.accountKey });
  return {
    service,
    wide,
    async relay(name, events) {
      const peer = startMx();
      peers.push(peer);
      const relayUrl = `smtp://127.0.0.1:${peer.port}?insecure=1`;
      const made = await wide("POST", "/v1/routes", { name, kind: "relay", relayUrl, events });
      if (made.status !== 201) throw new Error(JSON.stringify(made.body));
      const { data } = (await wide("GET", "/v1/senders")).body;
      const project = data.at(-1).id;
      const { id, events: shown } = made.body;
      return {
        id,
        peer,
        url: shown === null ? "" : service.url + shown.url.slice(shown.url.indexOf("/v1/")),
        async send(more = {}) {
          await wide("PATCH", `/v1/senders/${project}`, { routeIds: [id] });
          // A bounce suppresses the address, so each message has its own.
          const email = `a${++count}@to.test`;
          const wanted = { from: { email: "news@sender.test" }, to: [{ email }], ...more };
          const sent = await service.send(wanted);
          await service.message(sent, "sent");
          return { id: sent, message: peer.messages.items.at(-1) as MxMessage };
        },
      };
    },
    async stop() {
      for (const peer of peers) peer.stop();
      await service.stop();
    },
  };
}

/** Posts a body as a provider does. */
export function postEvents(url: string, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(url, {
    method: "POST",
    body: text,
    headers: { "content-type": "application/json", ...headers },
  });
}

/** Returns the value of a header field of a message. */
export function fieldIn({ data }: MxMessage, name: string): string {
  return new RegExp(`^${name}: ?(.*?)\r?$`, "im").exec(data.toString())?.[1] ?? "";
}

export const MAILGUN_KEY = "mailgun-signing-key-of-a-test";

/** Returns a body that Mailgun's key has signed. */
export function mailgunBody(event: Record<string, unknown>, token = crypto.randomUUID(), ageMs = 0) {
  const timestamp = String(Math.floor((systemClock.now() - ageMs) / 1000));
  const signature = createHmac("sha256", MAILGUN_KEY)
    .update(timestamp + token)
    .digest("hex");
  return { signature: { timestamp, token, signature }, "event-data": event };
}

const pair = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
export const SENDGRID_KEY = pair.publicKey.export({ format: "der", type: "spki" }).toString("base64");

/** Posts a batch that SendGrid's key has signed. */
export function postSendgrid(url: string, events: readonly Record<string, unknown>[]) {
  const [timestamp, body] = [String(Math.floor(systemClock.now() / 1000)), JSON.stringify(events)];
  const signature = sign("sha256", Buffer.from(timestamp + body), pair.privateKey).toString("base64");
  const prefix = "x-twilio-email-event-webhook-";
  return postEvents(url, body, { [`${prefix}signature`]: signature, [`${prefix}timestamp`]: timestamp });
}
