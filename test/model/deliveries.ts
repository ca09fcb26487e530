import { refusalOf } from "./accept.ts";
import { agree, differ } from "./agree.ts";
import type { Deed } from "./choice.ts";
import { checkDeliveries } from "./event-deliveries.ts";
import { eventOf } from "./records.ts";
import { renderedOf } from "./templates.ts";
import { SERVICE_DOMAIN } from "./stage.ts";
import {
  DAY_MS,
  type Message,
  type Project,
  projectsOf,
  type Recipient,
  type RecipientStatus,
  type World,
} from "./state.ts";
import { enter } from "./suppressions.ts";

/** Delays after each failed attempt in minutes, the last one repeating. Each varies by a fifth. */
const DELAYS = [1, 5, 15, 30, 60, 120, 240, 360];
const GIVE_UP_MS = 3 * DAY_MS;
/** If a project was suspended, its mail is tried again within this time. */
const HELD_MS = 120_000;

/** The result of a try, by the address. */
type Outcome = "delivered" | "hard" | "soft" | "failed" | "delayed" | "complained" | "rejected";

const BY_DOMAIN: Readonly<Record<string, Outcome>> = {
  "gone.example": "hard",
  "full.example": "soft",
  "block.example": "failed",
  "later.example": "delayed",
};
const BY_NAME: Readonly<Record<string, Outcome>> = {
  bounced: "hard",
  "soft-bounced": "soft",
  complained: "complained",
  rejected: "rejected",
};

/** The error of mail whose domain is gone. */
const UNSIGNED = "domain_not_verified";

const isSimulated = (email: string): boolean => email.includes("@simulator.");

function outcomeOf({ email, attempts }: Recipient): Outcome {
  const [local = "", domain = ""] = email.split("@");
  if (!isSimulated(email)) return BY_DOMAIN[domain] ?? "delivered";
  if (local === "delayed") return attempts === 1 ? "delayed" : "delivered";
  return BY_NAME[local] ?? "delivered";
}

interface Row {
  message_id: string;
  ord: number;
  attempts: number;
  status: RecipientStatus;
  reason: string | null;
}

/** Sends everything due, and records each recipient's outcome. */
export const transmitTurn: Deed = async (world) => {
  await sweepTurn(world);
  world.trace.push("transmits");
  await world.stage.transmitHinted();
  const sql = "SELECT message_id, ord, attempts, status, reason FROM recipients";
  const rows = new Map(
    (await world.stage.db.all<Row>(sql)).map((row) => [`${row.message_id}.${row.ord}`, row]),
  );
  for (const project of projectsOf(world))
    for (const message of project.messages)
      for (const [ord, recipient] of message.recipients.entries()) {
        const row = rows.get(`${message.id}.${ord}`);
        if (row === undefined) return differ(`recipient ${ord} of ${message.id} is gone`);
        turn(world, { project, message, recipient, row });
      }
};

/** Adds due recipients to the queue. If a scheduled one's time has come, it is queued. */
export async function sweepTurn(world: World): Promise<void> {
  world.trace.push("the sweep");
  await world.stage.sweep();
  const now = world.stage.clock.now();
  for (const { messages } of projectsOf(world))
    for (const recipient of messages.flatMap(({ recipients }) => recipients))
      if (recipient.status === "accepted" && recipient.due !== null && recipient.due.from <= now)
        enterState(recipient, "queued", now);
  await checkDeliveries(world);
}

interface Turned {
  project: Project;
  message: Message;
  recipient: Recipient;
  row: Row;
}

function turn(world: World, turned: Turned): void {
  const { project, message, recipient, row } = turned;
  const now = world.stage.clock.now();
  const where = `${recipient.email} of ${message.id}`;
  const { due } = recipient;
  const tried = row.attempts > recipient.attempts;
  if (due === null || due.from > now) {
    if (tried) differ(`${where} is sent to though it is not due`);
  } else {
    const held = project.suspendedAt !== null;
    const mustGo = due.to <= now && !held && (project.liftedAt === null || now - project.liftedAt >= HELD_MS);
    if (tried) attempted(turned, now);
    else if (mustGo) differ(`${where} is due and is not sent to`);
  }
  const { status, attempts } = recipient;
  agree({ ...row }, { status, attempts }, `${where} after the turn`);
}

function enterState(recipient: Recipient, status: RecipientStatus, at: number): void {
  recipient.status = status;
  recipient.events.push({ type: eventOf(status), at });
}

/** One try. If the recipient is refused by now, it is not sent. Otherwise the address decides. */
function attempted(turned: Turned, now: number): void {
  const { project, message, recipient, row } = turned;
  recipient.attempts++;
  recipient.firstAttemptAt ??= now;
  recipient.due = null;
  const refusal = refusalOf(project, message, recipient.email, now);
  const lastEventAt = recipient.events.at(-1)?.at ?? now;
  if (refusal !== null) {
    recipient.reason = refusal;
    enterState(recipient, "rejected", now);
  } else if (project.suspendedAt !== null) {
    if (now - lastEventAt < GIVE_UP_MS)
      differ(`${recipient.email} is sent to though ${project.name} is suspended`);
    recipient.reason = "sender_suspended";
    enterState(recipient, "rejected", now);
  } else if (!renders(turned)) {
    enterState(recipient, "rendering_failure", now);
  } else if (isUnsigned(turned)) {
    recipient.reason = UNSIGNED;
    enterState(recipient, "rejected", now);
  } else end(turned, outcomeOf(recipient), row, now);
}

/** Renders the template as it is at the first try, for good. If the template is gone, rendering fails. */
function renders({ project, message }: Turned): boolean {
  const { template } = message;
  if (template === null) return true;
  if (!project.templates.includes(template)) return false;
  Object.assign(message, { ...renderedOf(template), template: null });
  return true;
}

/** If the domain of mail is gone, it cannot be signed. The model does not say if a new registration helps. */
function isUnsigned({ project, message, row }: Turned): boolean {
  const name = message.from.split("@")[1];
  if (name === `onboarding.${SERVICE_DOMAIN}`) return false;
  const domain = project.domains.find((one) => one.name === name);
  if (domain === undefined) return true;
  return domain.status === "pending" && row.reason === UNSIGNED;
}

function end({ project, message, recipient }: Turned, outcome: Outcome, row: Row, now: number): void {
  if (outcome === "delayed") {
    delayed(project, message, recipient, row, now);
    return;
  }
  if (outcome === "complained") enterState(recipient, "delivered", now);
  enterState(recipient, outcome === "hard" || outcome === "soft" ? "bounced" : outcome, now);
  if (outcome === "hard" || outcome === "soft") suppress(project, message, recipient, outcome, now);
}

/** Puts it off. If it has been tried for 72 hours, or would be by the next try, gives it up. */
function delayed(project: Project, message: Message, recipient: Recipient, row: Row, now: number): void {
  const delay = (DELAYS[recipient.attempts - 1] ?? 360) * 60_000;
  const age = now - (recipient.firstAttemptAt ?? now);
  if (age >= GIVE_UP_MS) agree(row.status, "bounced", "what was tried for 72 hours");
  if (age + delay * 1.2 < GIVE_UP_MS) agree(row.status, "delivery_delayed", "what was put off");
  if (row.status === "bounced") {
    enterState(recipient, "bounced", now);
    suppress(project, message, recipient, "soft", now);
    return;
  }
  enterState(recipient, "delivery_delayed", now);
  recipient.due = { from: now + delay * 0.8 - 1, to: now + delay * 1.2 + 1 };
}

/** A bounce suppresses the address: a hard one for good, a soft one for seven days, a simulated one not at all. */
function suppress(
  project: Project,
  { id }: Message,
  { email }: Recipient,
  type: "hard" | "soft",
  now: number,
): void {
  if (isSimulated(email)) return;
  enter(project, {
    id: "",
    email,
    reason: "bounce",
    bounceType: type,
    messageId: id,
    note: null,
    expiresAt: type === "hard" ? null : now + 7 * DAY_MS,
    createdAt: now,
  });
}
