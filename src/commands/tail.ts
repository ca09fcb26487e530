import { isObject } from "../core/validation.ts";
import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { defineCommand, type Flag } from "./support/command.ts";
import { type FeedEvent, followEvents } from "./support/event-feed.ts";

/** The flag that chooses events. */
export const TYPES_FLAG = {
  type: "string",
  value: "TYPES",
  help: "only events of these types, separated by commas, such as delivery,bounce",
} as const satisfies Flag;

/** Prints events as they happen. */
export const tail = defineCommand({
  name: "tail",
  flags: { types: TYPES_FLAG, ...API_FLAGS },
  about: `Prints the events of a project as they happen, until it is interrupted. If the connection is lost, it continues
after the last event. The key needs the scope emails:read.`,
  example: "postrider tail --types delivery,bounce,inbound_received",
  async run({ flags }, context) {
    const { clock, out } = context;
    const api = await apiFor(flags, context);
    for await (const event of followEvents({ api, clock, out }, flags.types))
      out.record({ id: event.id, ...event.data }, lineOf(event));
    throw new Error("unreachable: a feed has no end");
  },
});

/** Returns an event as a line: time, type, who it is about, message, and its most telling detail. */
function lineOf({ type, data }: FeedEvent): string {
  const { occurredAt, email, messageId } = data;
  const details = data[type];
  const { from, subject, reason, diagnostic, response, url } = isObject(details) ? details : {};
  const sender = isObject(from) ? from.email : undefined;
  const telling = diagnostic ?? response ?? reason ?? url ?? subject;
  return [occurredAt, String(type).padEnd(16), messageId, email ?? sender, telling]
    .filter((part) => part !== undefined && part !== null)
    .map((part) => String(part).replace(/\s+/g, " "))
    .join("  ");
}
