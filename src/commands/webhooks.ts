import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { callApi } from "./support/api-client.ts";
import { itemsOf, showItems } from "./support/api-list.ts";
import { defineCommand } from "./support/command.ts";
import { EX_OK } from "./support/exit.ts";
import { LIMIT_FLAG, limitOf } from "./support/listing.ts";
import { field } from "./support/output.ts";

const COLUMNS = [
  field("id"),
  field("url"),
  field("enabled"),
  field("eventTypes", "events"),
  field("disabledReason", "disabled because"),
  field("createdAt", "created"),
];

/** Makes a webhook. */
export const webhooksCreate = defineCommand({
  name: "webhooks create",
  args: ["URL"],
  flags: {
    ...API_FLAGS,
    events: { type: "string", value: "A,B", help: "types of events, such as delivery,bounce (default: all)" },
  },
  about: `Makes a webhook, and prints its signing secret once. The URL must be https with a public host, unless
ALLOW_PRIVATE_WEBHOOKS is set.`,
  example: "postrider webhooks create https://hooks.example.com/mail --events delivery,bounce",
  async run({ flags, args: [url] }, context) {
    const api = await apiFor(flags, context);
    const eventTypes =
      flags.events === undefined ? ["*"] : flags.events.split(",").map((type) => type.trim());
    const made = await callApi(context.clock, api, "POST", "/v1/webhooks", { url, eventTypes });
    context.out.record(made, `made ${made.id}\n  signing secret, shown this once: ${made.signingSecret}`);
    return EX_OK;
  },
});

/** Lists webhooks. */
export const webhooksList = defineCommand({
  name: "webhooks list",
  flags: { ...API_FLAGS, limit: LIMIT_FLAG },
  about: "Lists the webhooks of a project, newest first.",
  example: `postrider webhooks create https://hooks.example.com/list
postrider webhooks list`,
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    const api = await apiFor(flags, context);
    await showItems(context.out, itemsOf(context.clock, api, "/v1/webhooks"), limit, COLUMNS);
    return EX_OK;
  },
});
