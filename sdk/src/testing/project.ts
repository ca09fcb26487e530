import { Postrider } from "../client.ts";
import type { StreamedEvent } from "../resources/events.ts";
import type { Answer, Body } from "../types.ts";

/** Which message to wait for. A string fits if it is contained, an address if it is equal. */
export interface MessageFilter {
  to?: string | RegExp;
  from?: string | RegExp;
  subject?: string | RegExp;
}

type Message = Answer<"getEmail">;

/** A captured message with its body, `codes`, `links` and attachments. */
export type CapturedMessage = Message & Required<Pick<Message, "codes" | "links">>;

type EventOf<Type> = Type extends "*" ? StreamedEvent : Extract<StreamedEvent, { type: Type }>;

/** Events of a project as its webhooks have them, in their order. */
export interface TestEvents {
  /** Calls `handler` for each event of the type from now on; `*` means all. Returns a function that ends that. */
  on<Type extends StreamedEvent["type"] | "*">(
    type: Type,
    handler: (event: EventOf<Type>) => void,
  ): () => void;
}

/** One project of the service. Projects see nothing of each other, so parallel tests take one each. */
export interface TestProject {
  /** Origin of the API. */
  url: string;
  apiKey: string;
  client: Postrider;
  /** `smtp://…` with the project's login. */
  smtpUrl: string;
  /** Options for `nodemailer.createTransport`. */
  smtp: { host: string; port: number; auth: { user: string; pass: string }; secure: false; ignoreTLS: true };
  webhooks: TestEvents;
  /**
   * Waits for the first message that fits and was sent: captured, or failed as `failNext` asks. Each is returned once.
   * @throws if none comes in time; the error lists what did
   */
  waitFor(filter?: MessageFilter, options?: { timeoutMs?: number }): Promise<CapturedMessage>;
  /** Receives a made-up message. Makes the inbox of `to`, and its domain, if the project lacks them. */
  receive(message: Body<"simulateInbound"> & { to: string }): Promise<Answer<"simulateInbound">>;
  /** Forgets the messages and suppressions so far. The first project also forgets the failures. */
  reset(): Promise<void>;
}

/** The address of the service. It is never reached from other machines. */
export const HOST = "127.0.0.1";
const WAIT_MS = 10_000;
const POLL_MS = 50;
/** Messages that an error lists. */
const LISTED = 20;

/** The part that the projects of a service share. */
export interface ProjectParts {
  place: { url: string; port: number };
  /** Aborts when the service ends. */
  signal: AbortSignal;
}

/** Returns the project of a key. */
export function projectOf({ place, signal }: ProjectParts, apiKey: string): TestProject {
  const { url, port } = place;
  const client = new Postrider({ apiKey, baseUrl: url });
  const auth = { user: "postrider", pass: apiKey };
  /** Newest message before the last reset. */
  let before = "";
  const returned = new Set<string>();
  const arrived = async () => {
    const all: Answer<"listEmails">["data"] = [];
    for await (const message of client.emails.list({ direction: "outbound", limit: 100 })) {
      if (message.id <= before) break;
      all.push(message);
    }
    return all.reverse();
  };
  return {
    url,
    apiKey,
    client,
    smtpUrl: `smtp://${auth.user}:${auth.pass}@${HOST}:${port}/?ignoreTLS=true`,
    smtp: { host: HOST, port, auth, secure: false, ignoreTLS: true },
    webhooks: eventsOf(client, signal),
    async waitFor(filter = {}, { timeoutMs = WAIT_MS } = {}) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const all = await arrived();
        const found = all.find(
          (message) => isSent(message) && !returned.has(message.id) && fits(message, filter),
        );
        if (found !== undefined) {
          returned.add(found.id);
          const message = await client.emails.get(found.id);
          return { ...message, codes: message.codes ?? [], links: message.links ?? [] };
        }
        if (performance.now() > until) throw new Error(missing(filter, timeoutMs, all, returned));
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    async receive(message) {
      await ensureInbox(client, message.to);
      return client.inbound.simulate(message);
    },
    async reset() {
      const [newest] = (await client.emails.list({ limit: 1 })).data;
      before = newest?.id ?? before;
      returned.clear();
      for await (const { email } of client.suppressions.list()) await client.suppressions.remove({ email });
    },
  };
}

/** Makes the inbox of an address, and its domain, if the project lacks them. */
async function ensureInbox(client: Postrider, address: string): Promise<void> {
  const name = address.toLowerCase();
  const domain = name.slice(name.lastIndexOf("@") + 1);
  if ((await client.inboxes.list()).data.some((inbox) => inbox.address === name)) return;
  if (!(await client.domains.list()).data.some((known) => known.domain === domain))
    await client.domains.create({ domain });
  await client.inboxes.create({ address });
}

type Listed = Answer<"listEmails">["data"][number];

/** A message that was not tried yet. Its template is not rendered, so it has neither subject nor codes. */
const UNSENT: readonly string[] = ["accepted", "queued", "sending"];

function isSent({ status }: Listed): boolean {
  return !UNSENT.includes(status);
}

function fits(message: Listed, { to, from, subject }: MessageFilter): boolean {
  const isAt = (wanted: string | RegExp, address: string): boolean =>
    new RegExp(patternOf(wanted), "i").test(address);
  return (
    (to === undefined || message.to.some((address) => isAt(to, address))) &&
    (from === undefined || isAt(from, message.from)) &&
    (subject === undefined ||
      (typeof subject === "string"
        ? (message.subject ?? "").includes(subject)
        : new RegExp(subject.source, subject.flags.replace(/[gy]/g, "")).test(message.subject ?? "")))
  );
}

/** Returns the source of a regular expression that fits an address. */
export function patternOf(wanted: string | RegExp): string {
  return typeof wanted === "string" ? `^${wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$` : wanted.source;
}

function missing(
  filter: MessageFilter,
  timeoutMs: number,
  all: readonly Listed[],
  returned: ReadonlySet<string>,
): string {
  const wanted = Object.entries(filter).map(([name, value]) => `${name} ${String(value)}`);
  const lines = all
    .slice(-LISTED)
    .map(
      ({ id, to, subject, status }) =>
        `  to ${to.join(", ")}: ${JSON.stringify(subject ?? "")} (${status}${returned.has(id) ? ", returned before" : ""})`,
    );
  const heard = lines.length === 0 ? "No message arrived." : `These did:\n${lines.join("\n")}`;
  return `No message with ${wanted.join(", ") || "any content"} within ${timeoutMs} ms. ${heard}`;
}

/** Follows the project's events from the first handler on. */
function eventsOf(client: Postrider, signal: AbortSignal): TestEvents {
  const handlers = new Set<{ type: string; handle: (event: never) => void }>();
  let isFollowing = false;
  const follow = async (): Promise<void> => {
    try {
      for await (const event of client.events.stream({}, { signal }))
        for (const { type, handle } of handlers)
          if (type === "*" || type === event.type) handle(event as never);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  return {
    on(type, handle) {
      const one = { type, handle: handle as (event: never) => void };
      handlers.add(one);
      if (!isFollowing) void follow();
      isFollowing = true;
      return () => void handlers.delete(one);
    },
  };
}
