import { createHmac } from "node:crypto";
import type { PostRequest } from "../../src/net/post.ts";
import { agree, differ, membersOf } from "./agree.ts";
import type { Deed } from "./choice.ts";
import { sweepTurn } from "./deliveries.ts";
import { type Delivery, type Project, projectsOf, type Webhook, type World } from "./state.ts";

/** Delays before each attempt in seconds. Each is up to a fifth longer. */
const DELAYS = [0, 5, 300, 1800, 7200, 18_000, 36_000, 36_000];
const DISABLED_AFTER_MS = 5 * 86_400_000;

/** Answers of an endpoint, by the behaviour in its path. */
const ANSWERS: Readonly<Record<string, number | null>> = { ok: 200, fail: 500, gone: 410, silent: null };

interface Owned {
  project: Project;
  webhook: Webhook;
}

function webhooksOf(world: World): Owned[] {
  return projectsOf(world).flatMap((project) => project.webhooks.map((webhook) => ({ project, webhook })));
}

function answerAt(url: string): number | null {
  return ANSWERS[new URL(url).pathname.split("/")[1] ?? ""] ?? null;
}

/** Receives one push: checks the signature and the envelope, and answers as the URL says. */
function receive(world: World, posts: Map<string, number>, request: PostRequest): number | null {
  const owned = webhooksOf(world).find(({ webhook }) => webhook.url === request.url);
  if (owned === undefined) return differ(`a push goes to ${request.url}, where no webhook is`);
  const { project, webhook } = owned;
  if (!webhook.enabled) differ(`a push goes to ${request.url}, which is switched off`);
  const body = Buffer.concat(request.body).toString();
  const now = world.stage.clock.now();
  const seconds = Math.floor(now / 1000);
  const secrets = [
    webhook.secret,
    ...(webhook.former !== null && webhook.former.until > now ? [webhook.former.secret] : []),
  ];
  const sign = (secret: string) =>
    `v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
  agree(
    request.headers["Service-Signature"],
    [`t=${seconds}`, ...secrets.map(sign)].join(","),
    "the signature",
  );
  const envelope: unknown = JSON.parse(body);
  const delivery = webhook.deliveries.find(({ id }) => id === membersOf(envelope).id);
  if (delivery === undefined) return differ(`a push of ${body}, which the webhook does not have`);
  const createdAt = new Date(seconds * 1000).toISOString();
  const data = {
    senderId: project.id,
    ...(delivery.messageId === null ? {} : { messageId: delivery.messageId }),
  };
  agree(envelope, { id: delivery.id, type: delivery.type, createdAt, data }, "the envelope");
  posts.set(delivery.id, (posts.get(delivery.id) ?? 0) + 1);
  return answerAt(request.url);
}

interface DeliveryRow {
  id: string;
  status: Delivery["status"];
  attempts: number;
}

/** Makes every due push, and compares each delivery with the model. */
export const pushTurn: Deed = async (world) => {
  await sweepTurn(world);
  world.trace.push("pushes");
  const posts = new Map<string, number>();
  const faults: unknown[] = [];
  world.stage.endpoint((request) => {
    try {
      return receive(world, posts, request);
    } catch (error) {
      faults.push(error);
      return 200;
    }
  });
  await world.stage.pushHinted();
  if (faults.length > 0) throw faults[0];
  const sql = "SELECT id, status, attempts FROM webhook_deliveries";
  const rows = new Map((await world.stage.db.all<DeliveryRow>(sql)).map((row) => [row.id, row]));
  for (const owned of webhooksOf(world)) await settleTurn(world, owned, posts, rows);
};

async function settleTurn(
  world: World,
  { webhook }: Owned,
  posts: ReadonlyMap<string, number>,
  rows: ReadonlyMap<string, DeliveryRow>,
): Promise<void> {
  const now = world.stage.clock.now();
  const wasEnabled = webhook.enabled;
  const answer = answerAt(webhook.url);
  const enabledNow = await isEnabled(world, webhook.id);
  for (const delivery of webhook.deliveries) {
    const row = rows.get(delivery.id);
    if (row === undefined) return differ(`the delivery ${delivery.id} is gone`);
    const posted = posts.get(delivery.id) ?? 0;
    if (posted > 1) differ(`the delivery ${delivery.id} is pushed ${posted} times at once`);
    if (delivery.due === null || delivery.due.from > now) {
      if (posted > 0) differ(`the delivery ${delivery.id} is pushed though it is not due`);
    } else if (posted === 1) attempted(delivery, answer, now);
    else if (!enabledNow || !wasEnabled) {
      // If a delivery waits for a disabled webhook, it fails without a push when its time comes.
      Object.assign(delivery, { status: "failed", due: null, attempts: row.attempts });
    } else if (delivery.due.to <= now) differ(`the delivery ${delivery.id} is due and is not pushed`);
    agree(
      { ...row },
      { status: delivery.status, attempts: delivery.attempts },
      `the delivery ${delivery.id}`,
    );
  }
  const tried = webhook.deliveries.filter(({ id }) => posts.has(id)).length;
  if (tried > 0) judge(webhook, answer, enabledNow, now);
  else agree(enabledNow, wasEnabled, `whether ${webhook.id} is enabled`);
  webhook.enabled = enabledNow;
}

/** One attempt with that answer. */
function attempted(delivery: Delivery, answer: number | null, now: number): void {
  delivery.attempts++;
  const delay = DELAYS[delivery.attempts];
  if (answer === 200) Object.assign(delivery, { status: "succeeded", due: null });
  else if (answer === 410 || delay === undefined) Object.assign(delivery, { status: "failed", due: null });
  else delivery.due = { from: now + delay * 1000, to: now + delay * 1200 + 1 };
}

/** True if the webhook stays enabled: a 410 disables it at once, and so do five days of failures only. */
function judge(webhook: Webhook, answer: number | null, enabledNow: boolean, now: number): void {
  if (answer === 200) {
    webhook.failingSince = null;
    agree(enabledNow, true, `whether ${webhook.id}, which answers, is enabled`);
    return;
  }
  webhook.failingSince ??= now;
  const over = answer === 410 || now - webhook.failingSince >= DISABLED_AFTER_MS;
  if (!over || answer === 410) agree(enabledNow, !over, `whether ${webhook.id}, which fails, is enabled`);
  // The model does not say if enabling it restarts the five days.
  if (!enabledNow) webhook.failingSince = null;
}

async function isEnabled({ stage: { db } }: World, id: string): Promise<boolean> {
  const row = await db.first<{ enabled: number }>("SELECT enabled FROM webhooks WHERE id = ?", [id]);
  return row?.enabled === 1;
}
