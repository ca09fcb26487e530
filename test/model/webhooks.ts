import type { Chance } from "../support/chance.ts";
import { agree, differ, isIdOf, membersOf, textOf } from "./agree.ts";
import { type Deed, some, someOf, someProject, subset } from "./choice.ts";
import { type Ask, ask, askToChange } from "./request.ts";
import type { Delivery, Project, Webhook, World } from "./state.ts";

const TYPES = [
  "accepted",
  "queued",
  "sending",
  "sent",
  "delivery_delayed",
  "delivery",
  "bounce",
  "complaint",
  "rejected",
  "rendering_failure",
  "failed",
  "open",
  "click",
  "unsubscribed",
  "inbound_received",
  "inbound_rejected",
];
/** Behaviour of an endpoint, by the first segment of its path. */
const MANNERS = ["ok", "ok", "ok", "fail", "silent", "gone"] as const;

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "webhooks:read" : "webhooks:write";
  return { account: project.account, project, method, path: `/v1/webhooks${path}`, scope };
}

export function webhookView({ id, url, enabled, eventTypes }: Webhook): object {
  return { id, url, enabled, eventTypes, signingSecret: "" };
}

function someUrl(world: World, chance: Chance): string {
  return `https://hooks.example/${chance.pick(MANNERS)}/${world.next()}`;
}

function someTypes(chance: Chance): string[] {
  const types = chance.happens(0.4) ? ["*"] : subset(chance, TYPES);
  return types.length === 0 ? ["delivery"] : types;
}

function secretOf(body: unknown): string {
  const secret = textOf(membersOf(body).signingSecret);
  if (!/^whsec_[0-9A-Za-z_-]{43}$/.test(secret)) differ(`${secret} is no signing secret`);
  return secret;
}

/** Addresses and types that are refused when a webhook is saved, with the field at fault. */
const REFUSED: readonly [object, string][] = [
  [{ url: "http://hooks.example/" }, "url"],
  [{ url: "https://localhost/" }, "url"],
  [{ url: "https://10.0.0.1/" }, "url"],
  [{ eventTypes: [] }, "eventTypes"],
  [{ eventTypes: ["arrival"] }, "eventTypes[0]"],
];

export const makeWebhook: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const body = { url: someUrl(world, chance), eventTypes: someTypes(chance) };
  const request = { ...base(project, "POST", ""), body };
  const refused = some(chance, REFUSED);
  if (refused !== undefined && chance.happens(0.15)) {
    const [wrong, param] = refused;
    await ask(world, chance, { ...request, body: { ...body, ...wrong } }, { status: 422, param });
    return;
  }
  if (project.webhooks.length > 3) return;
  const made = await ask(world, chance, request, { status: 201 });
  const secret = secretOf(made.body);
  const webhook: Webhook = {
    id: textOf(membersOf(made.body).id),
    ...body,
    enabled: true,
    secret,
    former: null,
    failingSince: null,
    deliveries: [],
  };
  agree(made.body, { ...webhookView(webhook), id: isIdOf("whk"), signingSecret: secret }, "the new webhook");
  project.webhooks.push(webhook);
};

export const changeWebhook: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) => webhooks);
  if (found === null) return;
  const { project, item } = found;
  const body = {
    ...(chance.happens(0.6) ? { enabled: chance.happens(0.7) } : {}),
    ...(chance.happens(0.3) ? { url: someUrl(world, chance) } : {}),
    ...(chance.happens(0.3) ? { eventTypes: someTypes(chance) } : {}),
  };
  const shown = await askToChange(world, chance, base(project, "PATCH", `/${item.id}`), item, body);
  agree(shown, webhookView(item), "the changed webhook");
};

export const readWebhook: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) => webhooks);
  if (found === null) return;
  const read = await ask(world, chance, base(found.project, "GET", `/${found.item.id}`), { status: 200 });
  agree(read.body, webhookView(found.item), "the webhook");
};

export const dropWebhook: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) => webhooks);
  if (found === null) return;
  const { project, item } = found;
  await ask(world, chance, base(project, "DELETE", `/${item.id}`), { status: 204 });
  project.webhooks.splice(project.webhooks.indexOf(item), 1);
  await ask(world, chance, base(project, "GET", `/${item.id}/deliveries`), { status: 404 });
};

/** Both secrets sign during the grace period. If there is none, the old secret is invalid at once. */
export const rotateSecret: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) => webhooks);
  if (found === null) return;
  const { project, item } = found;
  const graceSeconds = chance.pick([0, 60, 7200, 604_800, 604_801]);
  const request = { ...base(project, "POST", `/${item.id}/rotate-secret`), body: { graceSeconds } };
  if (graceSeconds > 604_800) {
    await ask(world, chance, request, { status: 422, param: "graceSeconds" });
    return;
  }
  const rotated = await ask(world, chance, request, { status: 200 });
  const secret = secretOf(rotated.body);
  item.former = { secret: item.secret, until: world.stage.clock.now() + graceSeconds * 1000 };
  item.secret = secret;
};

/** A sample of the type, or of the first subscribed one. */
export const testWebhook: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) => webhooks);
  if (found === null) return;
  const { project, item } = found;
  const wanted = chance.happens(0.5) ? chance.pick(["delivery", "inbound_received"]) : undefined;
  const request = { ...base(project, "POST", `/${item.id}/test`), body: { type: wanted } };
  if (!item.enabled) {
    // The model does not say if a disabled webhook can be tried. The service refuses it.
    await ask(world, chance, request, { status: 409, code: "invalid_state" });
    return;
  }
  const tried = await ask(world, chance, request, { status: 202 });
  const first = item.eventTypes[0];
  const type = textOf(membersOf(tried.body).type);
  if (wanted !== undefined) agree(type, wanted, "the sample's type");
  else if (first !== "*") agree(type, first, "the sample's type");
  const id = textOf(membersOf(tried.body).id);
  agree(tried.body, { id: isIdOf("dlv"), testMode: true }, "the sample");
  item.deliveries.push(pendingDelivery(id, type, null, world.stage.clock.now()));
};

export function pendingDelivery(id: string, type: string, messageId: string | null, now: number): Delivery {
  return { id, type, messageId, status: "pending", attempts: 0, due: { from: now, to: now } };
}

/** A replay pushes a logged delivery once more, under the same id. */
export const replayDelivery: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ webhooks }) =>
    webhooks.filter(({ deliveries }) => deliveries.length > 0),
  );
  if (found === null) return;
  const { project, item } = found;
  const delivery = some(chance, item.deliveries);
  if (delivery === undefined) return;
  const path = `/${item.id}/deliveries/${delivery.id}/replay`;
  if (!item.enabled) {
    await ask(world, chance, base(project, "POST", path), { status: 409, code: "invalid_state" });
    return;
  }
  const replayed = await ask(world, chance, base(project, "POST", path), { status: 202 });
  agree(replayed.body, { id: delivery.id, status: "pending" }, "the replay");
  const now = world.stage.clock.now();
  // The model does not say if the count of attempts restarts.
  const attempts = "SELECT attempts FROM webhook_deliveries WHERE id = ?";
  const row = await world.stage.db.first<{ attempts: number }>(attempts, [delivery.id]);
  if (row === null) return differ(`the delivery ${delivery.id} is gone`);
  Object.assign(delivery, { status: "pending", due: { from: now, to: now }, attempts: row.attempts });
};
