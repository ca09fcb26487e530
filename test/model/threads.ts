import { join, messageOf, roomOf, take } from "./accept.ts";
import { agree, isIdOf, itemsOf, membersOf, shownTime, textOf } from "./agree.ts";
import { type Deed, some, someOf } from "./choice.ts";
import { readRecord } from "./records.ts";
import { type Ask, ask, NEVER } from "./request.ts";
import type { Message, Project, Thread } from "./state.ts";

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "threads:read" : "threads:reply";
  return { account: project.account, project, method, path, scope };
}

export function threadView(project: Project, thread: Thread): object {
  const { id, inbox, messages, lastMessageAt, createdAt } = thread;
  return {
    id,
    inboxId: inbox.id,
    senderId: project.id,
    messageCount: messages.length,
    lastMessageId: messages.at(-1)?.id,
    lastMessageAt: shownTime(lastMessageAt),
    createdAt: shownTime(createdAt),
  };
}

export const readThread: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ threads }) => threads);
  if (found === null) return;
  const { project, item } = found;
  const read = await ask(world, chance, base(project, "GET", `/v1/threads/${item.id}`), { status: 200 });
  const messages = item.messages.slice(-100).map(({ id }) => ({ id }));
  agree(read.body, { ...threadView(project, item), messages }, "the thread");
};

/** Simulated mail takes the path of all mail, and joins the thread of the message it answers. */
export const simulate: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ inboxes }) => inboxes);
  if (found === null) return;
  const { project, item: inbox } = found;
  const answered = chance.happens(0.5) ? some(chance, project.messages) : undefined;
  const subject = chance.pick(["Question", "Вопрос: Größe 50%_off", "Re: Hello there"]);
  const from = chance.pick(["ada@ok.example", "bob@ok.example"]);
  const text = `A question ${world.next()}`;
  const to = chance.pick([inbox.address, inbox.address.replace("@", "+x@")]);
  const where = chance.happens(0.5) ? { inboxId: inbox.id } : { to };
  const body = { ...where, from: { email: from }, subject, text, inReplyTo: answered?.id };
  const request = { ...base(project, "POST", "/v1/inbound/simulate"), scope: "inboxes:write", body };
  const arrived = await ask(world, chance, request, { status: 202 });
  agree(arrived.body, { messageId: isIdOf("msg"), threadId: isIdOf("thr"), testMode: true }, "the arrival");
  const { messageId, threadId } = membersOf(arrived.body);
  const now = world.stage.clock.now();
  const message: Message = {
    id: textOf(messageId),
    direction: "inbound",
    from,
    to: ["to" in where ? to : inbox.address],
    cc: [],
    bcc: [],
    subject,
    html: null,
    text,
    tags: [],
    templateId: null,
    unsubscribeLink: false,
    scheduledAt: null,
    recipients: [],
    thread: null,
    inboxId: inbox.id,
    rfcId: null,
    template: null,
    createdAt: now,
    events: ["inbound_received"],
  };
  project.messages.push(message);
  const known = answered?.thread?.inbox === inbox ? answered.thread : null;
  const id = textOf(threadId);
  if (known !== null) agree(id, known.id, "the thread of an answer");
  const thread = project.threads.find((other) => other.id === id && other.inbox === inbox);
  const fresh: Thread = { id, inbox, subject, messages: [], lastMessageAt: now, createdAt: now, replies: [] };
  // If a message answers one that the inbox has not seen, it opens a thread that later answers may join.
  if (known === null && answered === undefined)
    agree(thread === undefined, true, "that a new mail begins a thread");
  join(project, message, thread ?? fresh);
};

const MINUTE_MS = 60_000;
const REPLIES_PER_MINUTE = 20;

/** A reply is from the inbox, to the author of the last received message. */
export const reply: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ threads }) =>
    threads.filter(({ messages }) => messages.some(({ direction }) => direction === "inbound")),
  );
  if (found === null) return;
  const { project, item: thread } = found;
  const now = world.stage.clock.now();
  const answered = thread.messages.findLast(({ direction }) => direction === "inbound");
  if (answered === undefined) return;
  const item = {
    from: { email: thread.inbox.address },
    to: [{ email: answered.from }],
    subject: answered.subject.startsWith("Re: ") ? answered.subject : `Re: ${answered.subject}`,
    text: "An answer",
  };
  const request = { ...base(project, "POST", `/v1/threads/${thread.id}/reply`), body: { text: item.text } };
  const recent = thread.replies.filter((at) => now - at < MINUTE_MS).length;
  if (recent >= REPLIES_PER_MINUTE) return;
  if (thread.inbox.domain.status === "pending") {
    if (project.suspendedAt === null && roomOf(project, now) > 0)
      await ask(world, chance, request, { status: 403, code: "domain_not_verified" });
    return;
  }
  if (project.suspendedAt !== null || roomOf(project, now) < 1) {
    const code = project.suspendedAt === null ? "daily_quota_exceeded" : "sender_suspended";
    await ask(world, chance, request, { status: 403, code });
    return;
  }
  const replied = await ask(world, chance, request, { status: 202 });
  const id = textOf(membersOf(replied.body).id);
  const message = { ...messageOf(project, item, now), id };
  // The answer does not tell that every recipient is rejected.
  agree(replied.body, { id: isIdOf("msg"), status: "queued", threadId: thread.id }, "the reply");
  take(project, message.recipients.length, now);
  project.messages.push(message);
  thread.replies.push(now);
  join(project, message, thread);
  await readRecord(world, NEVER, project, message);
  const read = await ask(world, NEVER, base(project, "GET", `/v1/threads/${thread.id}`), { status: 200 });
  agree(membersOf(itemsOf(membersOf(read.body).messages).at(-1)).id, id, "the last message of the thread");
};
