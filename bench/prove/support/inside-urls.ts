/** Tries URLs and hosts that lead inside against a service, one at a time, and reports those that reached the trap. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Ground, expectOk, FROM } from "./service.ts";
import type { Trap } from "./trap.ts";

const POLL_MS = 5;
/** Time limit of one attempt; the service itself gives up sooner. */
const ATTEMPT_LIMIT_MS = 15_000;

/** Result of one try. */
export interface Tried {
  /** True if the service refused it when it was saved. */
  refused: boolean;
  /** True if an attempt was made and recorded. */
  attempted: boolean;
  /** Connections at the trap during the try, and requests at the honest endpoint. */
  caught: number;
  answered: number;
}

export interface Field {
  ground: Ground;
  trap: Trap;
}

const REFUSED: Tried = { refused: true, attempted: false, caught: 0, answered: 0 };

/** Counts connections at the trap and the endpoint while an action runs. */
async function watched({ trap }: Field, attempt: () => Promise<boolean>): Promise<Tried> {
  const [caught, answered] = [trap.caught.length, trap.requests.length];
  const attempted = await attempt();
  return {
    refused: false,
    attempted,
    caught: trap.caught.length - caught,
    answered: trap.requests.length - answered,
  };
}

/** Saves a URL as a webhook's. If it is accepted, pushes to it once. */
export async function tryUrl(field: Field, url: string): Promise<Tried> {
  const saved = await field.ground.service.call("POST", "/v1/webhooks", { url, eventTypes: ["delivery"] });
  if (saved.status !== 201) return REFUSED;
  return push(field, saved.body.id);
}

/** Puts a URL into a webhook's row past the check of saving, and pushes to it once: tests the check of each attempt. */
export async function tryPlanted(field: Field, url: string): Promise<Tried> {
  const { service } = field.ground;
  const saved = await expectOk(service, "POST", "/v1/webhooks", {
    url: "https://hook.example/",
    eventTypes: ["delivery"],
  });
  using database = new Database(join(service.folder, "postrider.db"));
  database.run("PRAGMA busy_timeout = 5000");
  database.run("UPDATE webhooks SET url = ? WHERE id = ?", [url, saved.id]);
  return push(field, saved.id);
}

/** Pushes one sample to a webhook, and waits until its attempt is recorded. */
export function push(field: Field, webhookId: string): Promise<Tried> {
  const { service } = field.ground;
  return watched(field, async () => {
    await expectOk(service, "POST", `/v1/webhooks/${webhookId}/test`, {});
    return recorded(async () => {
      const log = await expectOk(service, "GET", `/v1/webhooks/${webhookId}/deliveries`);
      return log.data.length > 0 && log.data[0].status !== "pending";
    });
  });
}

/** Sends a message to an address, and waits until its first attempt is recorded. */
export async function tryMail(field: Field, to: string): Promise<Tried> {
  const { service } = field.ground;
  const mail = { from: { email: FROM }, to: [{ email: to }], subject: "inside", text: "inside" };
  const sent = await service.call("POST", "/v1/emails", mail);
  if (sent.status !== 202) return REFUSED;
  return watched(field, () =>
    recorded(async () => {
      const message = await expectOk(service, "GET", `/v1/emails/${sent.body.id}`);
      return !["accepted", "queued", "sending"].includes(message.status);
    }),
  );
}

async function recorded(look: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + ATTEMPT_LIMIT_MS;
  while (performance.now() < until) {
    if (await look()) return true;
    await Bun.sleep(POLL_MS);
  }
  return false;
}
