import { randomBase62 } from "../core/ids.ts";
import { SECRET_PREFIX, SIGNATURE_HEADER, signWebhook } from "../core/crypto/webhook-signature.ts";
import type { Clock } from "../core/time/clock.ts";
import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { defineCommand } from "./support/command.ts";
import { exchangeDirect } from "./support/direct-fetch.ts";
import { type FeedEvent, followEvents } from "./support/event-feed.ts";
import { usage } from "./support/exit.ts";
import { TYPES_FLAG } from "./tail.ts";

/** Time for one request to the local address, milliseconds. */
const FORWARD_TIMEOUT_MS = 15_000;
/** Characters of the secret after its prefix. */
const SECRET_CHARS = 32;

/** Forwards events to a local address. */
export const listen = defineCommand({
  name: "listen",
  flags: {
    "forward-to": {
      type: "string",
      value: "URL",
      required: true,
      help: "address that gets the events, such as http://localhost:4000/hooks",
    },
    secret: {
      type: "string",
      value: "SECRET",
      help: "secret that signs the events (default: a new one, printed)",
    },
    types: TYPES_FLAG,
    ...API_FLAGS,
  },
  about: `Posts the events of a project to an address of this machine, in the form and with the signature of a webhook, until
it is interrupted. Nothing has to be reachable from the Internet, and no webhook is made. Events are posted one after another,
each once: unlike a webhook, it does not try again. The key needs the scope emails:read.`,
  example: "postrider listen --forward-to http://localhost:4000/hooks --types bounce,inbound_received",
  async run({ flags }, context) {
    const { clock, out } = context;
    const target = targetOf(flags["forward-to"]);
    const api = await apiFor(flags, context);
    const secret = flags.secret ?? `${SECRET_PREFIX}${randomBase62(SECRET_CHARS)}`;
    out.record({ forwardTo: target.href, secret }, `Events go to ${target.href}, signed with ${secret}`);
    for await (const event of followEvents({ api, clock, out }, flags.types)) {
      const answer = await forward(clock, target, secret, event);
      const { id, type, data } = event;
      out.record({ id, type, messageId: data.messageId, answer }, `${answer}  ${type}  ${data.messageId}`);
    }
    throw new Error("unreachable: a feed has no end");
  },
});

function targetOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usage("--forward-to must begin with http:// or https://");
  return url;
}

/** Posts one event. Returns the status of the answer, or why there is none. */
async function forward(clock: Clock, url: URL, secret: string, event: FeedEvent): Promise<number | string> {
  const unixSeconds = Math.floor(clock.now() / 1000);
  const body = envelopeOf(event, unixSeconds);
  const outcome = await exchangeDirect(clock, url, {
    method: "POST",
    headers: {
      "User-Agent": "Postrider-Listen/1.0",
      "Content-Type": "application/json",
      [SIGNATURE_HEADER]: signWebhook([secret], unixSeconds, body),
    },
    body,
    timeoutMs: FORWARD_TIMEOUT_MS,
    maxBytes: 0,
  });
  return outcome.kind === "answered" ? outcome.status : outcome.reason;
}

/** Returns the body of a webhook for the event. Its id is the event's. */
function envelopeOf({ id, type, data }: FeedEvent, unixSeconds: number): string {
  const { type: _ofStream, ...own } = data;
  return JSON.stringify({ id, type, createdAt: new Date(unixSeconds * 1000).toISOString(), data: own });
}
