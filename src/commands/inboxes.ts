import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { callApi } from "./support/api-client.ts";
import { type Item, showItems } from "./support/api-list.ts";
import { defineCommand } from "./support/command.ts";
import { EX_OK } from "./support/exit.ts";
import { LIMIT_FLAG, limitOf } from "./support/listing.ts";
import { field } from "./support/output.ts";

const COLUMNS = [
  field("id"),
  field("address"),
  field("displayName", "name"),
  field("type"),
  field("createdAt", "created"),
];

/** Makes an inbox. */
export const inboxesCreate = defineCommand({
  name: "inboxes create",
  args: ["ADDRESS"],
  flags: {
    ...API_FLAGS,
    name: { type: "string", value: "NAME", help: "display name of its replies" },
  },
  about: `Makes an inbox at an address of a domain of the project. In capture mode, inbox.SERVICE_DOMAIN needs no
domain.`,
  example: "postrider inboxes create support@inbox.postrider.localhost --name Support",
  async run({ flags, args: [address] }, context) {
    const api = await apiFor(flags, context);
    const body = { address, ...(flags.name === undefined ? {} : { displayName: flags.name }) };
    const made = await callApi(context.clock, api, "POST", "/v1/inboxes", body);
    context.out.record(made, `made ${made.id}, ${made.address}`);
    for (const { message } of (made.warnings ?? []) as { message: string }[]) context.out.warn(message);
    return EX_OK;
  },
});

/** Lists inboxes. */
export const inboxesList = defineCommand({
  name: "inboxes list",
  flags: { ...API_FLAGS, limit: LIMIT_FLAG },
  about: "Lists the inboxes of a project, newest first.",
  example: `postrider inboxes create list@inbox.postrider.localhost
postrider inboxes list`,
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    const api = await apiFor(flags, context);
    const { data } = await callApi(context.clock, api, "GET", "/v1/inboxes");
    await showItems(context.out, eachOf(data as Item[]), limit, COLUMNS);
    return EX_OK;
  },
});

async function* eachOf(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}
