import { randomBytes } from "node:crypto";
import { newId } from "../../src/core/ids.ts";
import { prepareBody, prepareContent, type PrepareDeps } from "../../src/store/messages/prepare-content.ts";
import type { Statement } from "../../src/store/engine/client.ts";
import { insertEvents } from "../../src/store/events/events.ts";
import { insertMessage, type Message } from "../../src/store/messages/messages.ts";
import { insertRecipients } from "../../src/store/messages/recipients.ts";
import { rememberReferences, stepThread } from "../../src/store/threads/threads.ts";
import { insertDeliveries } from "../../src/store/webhooks/webhook-deliveries.ts";
import { listedMessage, PROJECTS } from "./listed-messages.ts";

/** The make-up of an ordinary project. */
export const WORLD: readonly string[] = [
  "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
  `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
    VALUES ('${PROJECTS[0]}', 'acc_1', 'shop', 'shop', 'unlimited', 'unlimited', 1)`,
  `INSERT INTO domains (id, account_id, sender_id, name, status, created_at)
    VALUES ('dom_1', 'acc_1', '${PROJECTS[0]}', 'shop.example', 'verified', 1)`,
  `INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at)
    VALUES ('inb_1', '${PROJECTS[0]}', 'dom_1', 'help@shop.example', 'agent', 1)`,
  `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
    VALUES ('whk_1', '${PROJECTS[0]}', 'https://x.test', '["*"]', 's', 1, 1)`,
];

/** One message in this many has an attachment of this size, in bytes that cannot be compressed. */
const ATTACHMENTS = [
  { oneOf: 100, bytes: 512 * 1024 },
  { oneOf: 20, bytes: 48 * 1024 },
] as const;
/** Messages that arrive in an inbox join one thread, this many at a time. */
const MAILS_OF_A_THREAD = 3;

/**
 * Stores one message with every row that it has after its delivery. Every other message came to an inbox.
 * @param options.attachments false if no message has one
 */
export async function storeMail(
  deps: PrepareDeps,
  at: number,
  { attachments = true }: { attachments?: boolean } = {},
): Promise<void> {
  const { db, clock } = deps;
  const now = clock.now();
  const inbound = at % 2 === 1;
  const place = threadOf(at, now);
  const message: Message = {
    ...listedMessage(PROJECTS[0], newId("msg", now), now, at, Number.MAX_SAFE_INTEGER),
    ...(inbound
      ? { direction: "inbound", status: "delivered", inboxId: "inb_1", threadId: place.threadId }
      : {}),
  };
  const body = await prepareBody(deps, PROJECTS[0], { html: words(at, 300), text: words(at + 1, 150) });
  const attachment = attachments ? ATTACHMENTS.find(({ oneOf }) => at % oneOf < 2) : undefined;
  const large =
    attachment === undefined ? null : await prepareContent(deps, PROJECTS[0], randomBytes(attachment.bytes));
  const raw = inbound
    ? (large ?? (await prepareContent(deps, PROJECTS[0], Buffer.from(words(at + 2, 500)))))
    : null;
  const attached = large === null ? [] : [{ ...fileOf(now, large.size), content: inbound ? null : large }];
  await db.write([
    ...insertMessage(message, { body, raw }, attached),
    ...(inbound ? arrival(message, place) : departure(message)),
    ...happened(message, inbound ? ["inbound_received"] : ["accepted", "queued", "sending", "delivery"]),
  ]);
}

let thread = { threadId: "", mails: 0 };

function threadOf(at: number, now: number): { threadId: string } {
  if (at % 2 === 1 && (thread.threadId === "" || ++thread.mails > MAILS_OF_A_THREAD))
    thread = { threadId: newId("thr", now), mails: 1 };
  return thread;
}

function fileOf(now: number, size: number) {
  const disposition = "attachment" as const;
  const contentType = "application/octet-stream";
  return { id: newId("att", now), filename: "file.bin", contentType, disposition, contentId: null, size };
}

function arrival(message: Message, { threadId }: { threadId: string }): Statement[] {
  const place = { senderId: message.senderId, inboxId: "inb_1", threadId };
  return [
    stepThread({
      ...place,
      messageId: message.id,
      subject: message.subject,
      preview: words(message.createdAt, 30),
      participants: [message.from.email],
      hasAttachments: false,
      inbound: true,
      at: message.createdAt,
    }),
    ...rememberReferences(place, [`<${message.id}-parent@elsewhere.example>`]),
  ];
}

function departure({ id, senderId, to, createdAt }: Message): Statement[] {
  const recipients = to.map(({ email }, ord) => ({ ord, email, domain: email.split("@")[1] ?? "" }));
  const final = { kind: "to", status: "delivered", reason: null, dueAt: null } as const;
  return [
    insertRecipients(
      senderId,
      id,
      recipients.map((one) => ({ ...one, ...final })),
      createdAt,
    ),
    {
      sql: `INSERT INTO attempts (message_id, ord, attempt, started_at, duration_ms, outcome, mx, transcript)
        VALUES (?, 0, 1, ?, 120, 'accepted', 'mx.d.example', ?)`,
      args: [id, createdAt, JSON.stringify(Array.from({ length: 10 }, (_, at) => `250 ${words(at, 6)}`))],
    },
  ];
}

/** Stores the events, each with its row in the webhook log. */
function happened({ id, senderId, createdAt }: Message, types: readonly HappenedType[]): Statement[] {
  const events = types.map((type) => {
    const given = { id: newId("evt", createdAt), senderId, messageId: id, type, email: null, data: {} };
    return { ...given, createdAt };
  });
  const lines = events.map((event) => ({ id: newId("dlv", createdAt), webhookId: "whk_1", event }));
  return [
    insertEvents(events),
    ...insertDeliveries(lines, createdAt),
    {
      sql: "UPDATE webhook_deliveries SET status = 'succeeded', due_at = NULL WHERE message_id = ? AND status = 'pending'",
      args: [id],
    },
  ];
}

type HappenedType = "accepted" | "queued" | "sending" | "delivery" | "inbound_received";

const WORDS = "order parcel invoice the your of for thank you delivery address account please number".split(
  " ",
);

/** Returns text that compresses as text does, different for each seed. */
function words(seed: number, count: number): string {
  const text = Array.from({ length: count }, (_, at) => WORDS[(seed * 31 + at * at) % WORDS.length]);
  return `${seed} ${text.join(" ")} ${randomBytes(count >> 1).toString("hex")}`;
}
